"""Write, copy, move and delete files. The built-in tools change the working folder only through this module."""

import os
import shutil
import stat
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from packetgate.tools.builtin.files import MAX_READ_BYTES, Root, ToolFailure, open_file, read_bytes


class FileOperations:
    """Changes files and folders of a root, named by their resolved paths. Blocking.

    A file appears or changes in one step. Only `write` replaces a file. System errors are raised as `OSError`.
    """

    def __init__(self, root: Root) -> None:
        self._root = root

    def write(self, path: Path, data: bytes, current: bytes | None) -> None:
        """Write a whole file, and make missing folders.

        Args:
            current: the content to replace; None for a new file.

        Raises:
            ToolFailure: the file has other content than `current`.
        """
        name, mode = self._root.name(path), None
        if current is not None:
            if read_bytes(self._root, path, MAX_READ_BYTES) != current:
                raise ToolFailure(f"another program has just changed {name}: read the file again")
            mode = stat.S_IMODE(path.lstat().st_mode)
        self._write_atomically(path, BytesIO(data), mode, replace=current is not None)

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file to a new path, with its permissions."""
        with self._root.folder(source.parent) as folder, open_file(source.name, folder) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            self._write_atomically(target, file, mode, replace=False)

    def move(self, source: Path, target: Path) -> None:
        """Move a file, a link or a folder to a new path."""
        with (
            self._root.folder(source.parent) as old_folder,
            self._root.folder(target.parent, create=True) as new_folder,
        ):
            if source.is_dir() and not source.is_symlink():
                os.rename(source.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder)
            else:  # unlike a rename, a link never replaces a file that was created just now
                os.link(source.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
                os.unlink(source.name, dir_fd=old_folder)

    def delete(self, path: Path) -> None:
        """Delete a file, a link or an empty folder."""
        with self._root.folder(path.parent) as folder:
            (os.rmdir if path.is_dir() and not path.is_symlink() else os.unlink)(path.name, dir_fd=folder)

    def make_folder(self, path: Path) -> None:
        """Make a folder, and missing folders above it."""
        with self._root.folder(path, create=True):
            pass

    def _write_atomically(self, path: Path, source: BinaryIO, mode: int | None, *, replace: bool) -> None:
        """Write a temporary file, then give it its final name; `replace` allows an existing file of that name."""
        temporary = f".{token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with self._root.folder(path.parent, create=True) as folder:
            try:
                with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                    shutil.copyfileobj(source, file)
                    file.flush()
                    os.fsync(file.fileno())
                (os.replace if replace else os.link)(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileExistsError as error:
                raise already_exists(self._root.name(path)) from error
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)


def already_exists(name: str, hint: str = "delete it first") -> ToolFailure:
    """Return the failure of a call that would create `name` again; `hint` is an alternative to another name."""
    return ToolFailure(f"{name} already exists: choose another name, or {hint}")
