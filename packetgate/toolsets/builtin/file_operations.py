"""Write, copy, move and delete files. The built-in tools change the working folder only through this module.

With a store, each change by a session's call is recorded before it runs, so that `undo` can reverse it.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from packetgate.tools.text.result_store import running_session
from packetgate.toolsets.builtin.files import Root, ToolFailure, open_file, read_bytes
from packetgate.toolsets.builtin.undo_store import ABSENT, MAX_UNDO_BYTES, Change, EntryState, UndoStore

TOO_LARGE = f"files above {MAX_UNDO_BYTES // 1_000_000} MB are not stored, nor are files that you cannot read"


class FileOperations:
    """Changes files and folders of a root, named by their resolved paths. Blocking.

    A file appears or changes in one step. Only `write` replaces a file. System errors are raised as `OSError`.
    """

    def __init__(self, root: Root, store: UndoStore | None) -> None:
        """`store` records the changes of calls that belong to a session."""
        self._root = root
        self._store = store

    @property
    def _recording(self) -> UndoStore | None:
        """The store, if the running call belongs to a session."""
        return self._store if running_session() else None

    def write(self, path: Path, data: bytes, current: bytes | None, undoes: Change | None = None) -> None:
        """Write a whole file, and make missing folders.

        Args:
            current: the content to replace; None for a new file.

        Raises:
            ToolFailure: the file has other content than `current`.
        """
        with self._lock():
            before = ABSENT if current is None else self.state_of(path)
            if current is not None and before.digest != sha256(current).hexdigest():
                raise ToolFailure(f"another program has just changed {self._root.name(path)}: read the file again")
            mode = None if current is None else before.mode
            self._write_atomically(path, BytesIO(data), mode, before=before, content=current, undoes=undoes)

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file to a new path, with its permissions."""
        with self._lock(), self._root.folder(source.parent) as folder, open_file(source.name, folder) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            self._write_atomically(target, file, mode)

    def move(self, source: Path, target: Path, undoes: Change | None = None) -> None:
        """Move a file, a link or a folder to a new path."""
        with self._lock():
            before, folders = self.state_of(source), self._missing_folders(target.parent)
            with (
                self._root.folder(source.parent) as old_folder,
                self._root.folder(target.parent, create=True) as new_folder,
                self._recorded(source, before, ABSENT, undoes, folders=folders, destination=target),
            ):
                if before.kind == "folder":
                    os.rename(source.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder)
                else:  # unlike a rename, a link never replaces a file that was created just now
                    os.link(
                        source.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False
                    )
                    try:
                        os.unlink(source.name, dir_fd=old_folder)
                    except OSError:
                        os.unlink(target.name, dir_fd=new_folder)
                        raise
            self._remove_empty(undoes)

    def delete(self, path: Path, undoes: Change | None = None) -> None:
        """Delete a file, a link or an empty folder."""
        with self._lock(), self._root.folder(path.parent) as folder:
            before, content = self.state_of(path), None
            if before.kind == "file" and before.is_storable and self._recording:
                content = read_bytes(self._root, path, MAX_UNDO_BYTES)
                if sha256(content).hexdigest() != before.digest:
                    raise ToolFailure(f"another program has just changed {self._root.name(path)}: nothing was changed")
            with self._recorded(path, before, ABSENT, undoes, content=content):
                (os.rmdir if before.kind == "folder" else os.unlink)(path.name, dir_fd=folder)
            self._remove_empty(undoes)

    def make_folder(self, path: Path, undoes: Change | None = None) -> None:
        """Make a folder, and missing folders above it."""
        folders = self._missing_folders(path.parent)
        with (
            self._lock(),
            self._recorded(path, ABSENT, EntryState("folder"), undoes, folders=folders),
            self._root.folder(path, create=True),
        ):
            pass

    def why_not_undoable(self, path: Path) -> str:
        """Return why deleting a path could not be undone; empty if it could."""
        if self._recording is None:
            return "this cannot be undone"
        return "" if self.state_of(path).is_storable else f"this cannot be undone: {TOO_LARGE}"

    def state_of(self, path: Path) -> EntryState:
        """Return the state of the entry at a path. Links are not followed."""
        try:
            with self._root.folder(path.parent) as folder:
                return _state_in(path.name, folder)
        except FileNotFoundError:
            return ABSENT
        except OSError as error:
            name = self._root.name(path)
            raise ToolFailure(
                f"{name} cannot be reached: {error.strerror}; a folder of its path was replaced"
            ) from error

    def _write_atomically(
        self,
        path: Path,
        source: BinaryIO,
        mode: int | None,
        *,
        before: EntryState = ABSENT,
        content: bytes | None = None,
        undoes: Change | None = None,
    ) -> None:
        """Write a temporary file, record the change, then give the file its final name.

        Args:
            before: the state that is replaced; if absent, an existing file of that name is not replaced.
            content: the content that is replaced.
        """
        temporary, folders = f".{token_hex(8)}.tmp", self._missing_folders(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with self._root.folder(path.parent, create=True) as folder:
            try:
                with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                    shutil.copyfileobj(source, file)
                    file.flush()
                    os.fsync(file.fileno())
                after = _state_in(temporary, folder)
                with self._recorded(path, before, after, undoes, folders=folders, content=content):
                    (os.link if before is ABSENT else os.replace)(
                        temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder
                    )
            except FileExistsError as error:
                raise already_exists(self._root.name(path)) from error
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the lock of all changes, and determine the outcome of changes whose process was killed."""
        if (store := self._recording) is None:
            yield
            return
        with store.lock() as is_first:
            if is_first:
                self._settle_killed(store)
            yield

    def _settle_killed(self, store: UndoStore) -> None:
        root = str(self._root.path)
        for change in (one for one in store.changes("started") if one.root == root):
            with suppress(ToolFailure):  # a path that cannot be reached may be reachable later
                now = [self.state_of(self._root.path / name) for name in change.paths]
                after = [change.after, change.before] if change.destination else [change.after]
                if all(map(EntryState.is_like, now, after)):
                    store.finish(change)
                elif all(map(EntryState.is_like, now, [change.before, ABSENT])):
                    store.drop(change)
                else:
                    store.finish(change, "unknown")

    @contextmanager
    def _recorded(
        self,
        path: Path,
        before: EntryState,
        after: EntryState,
        undoes: Change | None,
        *,
        folders: tuple[str, ...] = (),
        destination: Path | None = None,
        content: bytes | None = None,
    ) -> Iterator[None]:
        """Record a change before the block runs, and its end afterwards. A block that fails must change nothing."""
        if (store := self._recording) is None:
            yield
            return
        change = Change(
            root=str(self._root.path),
            path=self._root.name(path),
            before=before,
            after=after,
            destination=self._root.name(destination) if destination else "",
            folders=undoes.folders if undoes else folders,
            undoes=undoes.number if undoes else None,
        )
        change = store.begin(change, content)
        try:
            yield
        except BaseException:
            with suppress(ToolFailure):  # a later call compares the files with the record
                store.drop(change)
            raise
        with suppress(ToolFailure):
            store.finish(change)

    def _missing_folders(self, folder: Path) -> tuple[str, ...]:
        missing: list[str] = []
        while folder != self._root.path and not os.path.lexists(folder):
            missing.insert(0, self._root.name(folder))
            folder = folder.parent
        return tuple(missing)

    def _remove_empty(self, undoes: Change | None) -> None:
        """Remove the folders that the undone change made, innermost first, if they are empty."""
        for name in reversed(undoes.folders if undoes else ()):
            path = self._root.path / name
            with suppress(OSError), self._root.folder(path.parent) as folder:
                os.rmdir(path.name, dir_fd=folder)


def _state_in(name: str, folder: int) -> EntryState:
    """Return the state of an entry of an open folder. Raise FileNotFoundError if it does not exist."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    mode, size, changed_ns = stat.S_IMODE(status.st_mode), status.st_size, status.st_mtime_ns
    if stat.S_ISLNK(status.st_mode):
        return EntryState("link", os.readlink(name, dir_fd=folder))
    if stat.S_ISDIR(status.st_mode):
        return EntryState("folder", mode=mode)
    unstored = EntryState("file", f"{size} bytes of {changed_ns}", max(size, MAX_UNDO_BYTES + 1), mode, changed_ns)
    if not stat.S_ISREG(status.st_mode) or size > MAX_UNDO_BYTES:
        return unstored
    try:
        with open_file(name, folder) as file:
            digest = sha256()
            while piece := file.read(1 << 20):
                digest.update(piece)
    except PermissionError:  # the user may still move or delete the file
        return unstored
    return EntryState("file", digest.hexdigest(), size, mode, changed_ns)


def already_exists(name: str, hint: str = "delete it first") -> ToolFailure:
    """Return the failure of a call that would create `name` again; `hint` is an alternative to another name."""
    return ToolFailure(f"{name} already exists: choose another name, or {hint}")
