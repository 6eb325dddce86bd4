"""The working folder, and the promise that nothing outside it is opened."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from tools.builtin.failures import ToolFailure

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Root:
    """One folder that every path of the built-in tools must stay in."""

    def __init__(self, path: Path) -> None:
        self._given = path

    @cached_property
    def path(self) -> Path:
        """The folder itself without links; found on first use, because that touches the disk.

        Raises:
            ToolFailure: it is not a folder.
        """
        real = self._given.expanduser().resolve()
        if not real.is_dir():
            raise ToolFailure(f"the working folder {self._given} is not a folder: start Packetgate in one that exists")
        return real

    def resolve(self, path: str) -> Path:
        """Return the real place of `path`, relative to the folder or absolute; it need not exist.

        Raises:
            ToolFailure: it leads out of the folder, by itself or through a link, is empty, or no path at all.
        """
        if not path.strip():
            raise ToolFailure("the path is empty: name a file below the working folder, for example README.md")
        if "\0" in path:
            raise ToolFailure(f"the path {path!r} holds a NUL byte: name a file below the working folder")
        try:
            real = (self.path / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown ~user, a lone surrogate
            raise ToolFailure(f"{path!r} is not a usable path: {error}") from error
        if not real.is_relative_to(self.path):
            raise ToolFailure(
                f"{path!r} is outside the working folder {self.path}: use a path below it, relative to it"
            )
        return real

    def name(self, real: Path) -> str:
        """Return a resolved path as people see it: relative to the folder, with forward slashes."""
        return real.relative_to(self.path).as_posix()

    @contextmanager
    def folder(self, real: Path, *, create: bool = False) -> Iterator[int]:
        """Open a resolved folder and yield its file descriptor; with `create`, make what is missing.

        It is opened part by part and never through a link, so that a link put there after `resolve` leads nowhere.
        """
        parts = real.relative_to(self.path).parts
        current = os.open(self.path, _FOLDER)
        try:
            for part in parts:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=current)
                inner = os.open(part, _FOLDER, dir_fd=current)
                os.close(current)
                current = inner
            yield current
        finally:
            os.close(current)
