"""All changes that built-in tools make below the working folder. No other code of theirs writes to it."""

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from packetgate.tools.builtin.files import MAX_READ_BYTES, Root, ToolFailure, open_file, read_bytes


class Changes:
    """Changes files and folders of a root, named by their resolved paths. Blocking.

    A file appears or changes in one step. Only `write` replaces a file. Errors of the system are raised as `OSError`.
    """

    def __init__(self, root: Root) -> None:
        self._root = root

    def write(self, real: Path, data: bytes, before: bytes | None) -> None:
        """Write a whole file, and make missing folders.

        Args:
            before: the content that is replaced; None for a new file.

        Raises:
            ToolFailure: the file is no longer as `before`.
        """
        name, mode = self._root.name(real), None
        if before is not None:
            if read_bytes(self._root, real, MAX_READ_BYTES) != before:
                raise ToolFailure(f"{name} was changed by another program just now: read it again")
            mode = stat.S_IMODE(real.lstat().st_mode)
        self._put(real, BytesIO(data), mode, os.link if before is None else os.replace)

    def copy(self, real: Path, target: Path) -> None:
        """Copy a file to a new path, with its permissions."""
        with self._root.folder(real.parent) as folder, open_file(real.name, folder) as source:
            self._put(target, source, stat.S_IMODE(os.fstat(source.fileno()).st_mode), os.link)

    def move(self, real: Path, target: Path) -> None:
        """Move a file, a link or a folder to a new path."""
        with (
            self._root.folder(real.parent) as old_folder,
            self._root.folder(target.parent, create=True) as new_folder,
        ):
            if real.is_dir() and not real.is_symlink():
                os.rename(real.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder)
            else:  # unlike a rename, a link never replaces a file that was created just now
                os.link(real.name, target.name, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
                os.unlink(real.name, dir_fd=old_folder)

    def delete(self, real: Path) -> None:
        """Delete a file, a link or an empty folder."""
        with self._root.folder(real.parent) as folder:
            (os.rmdir if real.is_dir() and not real.is_symlink() else os.unlink)(real.name, dir_fd=folder)

    def make_folder(self, real: Path) -> None:
        """Make a folder, and missing folders above it."""
        with self._root.folder(real, create=True):
            pass

    def _put(self, real: Path, source: BinaryIO, mode: int | None, place: Callable[..., None]) -> None:
        """Write a temporary file, and give it its name with `place`; only `os.replace` replaces a file."""
        temporary = f".{token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with self._root.folder(real.parent, create=True) as folder:
            try:
                with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                    shutil.copyfileobj(source, file)
                    file.flush()
                    os.fsync(file.fileno())
                place(temporary, real.name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileExistsError as error:
                raise exists_already(self._root.name(real)) from error
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)


def exists_already(name: str) -> ToolFailure:
    """Return the failure for a path that a new file or folder cannot have."""
    return ToolFailure(f"{name} exists already: choose another name, or delete or overwrite it")
