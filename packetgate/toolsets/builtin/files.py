"""Open files of the working folder: never files outside of it, and secret files only if they are named explicitly.

ToolFailure             a failure that is reported to the model, with what to do
└── NotTextError        a file that is not UTF-8 text
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import BinaryIO

from packetgate.tools.policy.patterns import may_fit
from packetgate.tools.policy.rules import Effect, Rule
from packetgate.tools.text.roles import secret_reference_in

MAX_READ_BYTES = 5_000_000
"""Size of the largest file that tools read or write."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class ToolFailure(Exception):  # noqa: N818 - named for what the model reads
    """A failure that the model can act on; its message becomes the tool's result."""


class NotTextError(ToolFailure):
    """A file is not UTF-8 text."""


class Root:
    """The folder in which every path of the built-in tools must lie."""

    def __init__(self, path: Path, rules: Iterable[Rule] = ()) -> None:
        """Args:
        rules: the user's policy. Lists and searches omit files that `ai.read` may not read without approval.
        """
        self._configured_path = path
        self._withheld_patterns = tuple(
            rule.arguments["path"]
            for rule in rules
            if rule.effect is not Effect.ALLOW and "path" in rule.arguments and rule.names_tool("ai.read", "ai")
        )

    @cached_property
    def path(self) -> Path:
        """The folder with links resolved. Blocking on first use. Raise `ToolFailure` if it is not a folder."""
        real_path = self._configured_path.expanduser().resolve()
        if not real_path.is_dir():
            raise ToolFailure(
                f"the working folder {self._configured_path} is not a folder: start Packetgate in an existing folder"
            )
        return real_path

    def resolve(self, path: str, *, follow: bool = True) -> Path:
        """Return the resolved path for `path`, relative to the folder or absolute; it need not exist.

        Args:
            follow: whether to follow a link that the path itself names; links in its folders are always followed.

        Raises:
            ToolFailure: the path is empty, invalid or outside the folder; or it leads to a secret file under another
                name, so that the user was not asked about this file.
        """
        real_path = self.real_path(path, follow=follow)
        name = self.name(real_path)
        if may_hold_secrets(name) and not may_hold_secrets(path):
            raise ToolFailure(f"{path!r} leads to {name}, which may hold keys or secrets: give that path instead")
        return real_path

    def real_path(self, path: str, *, follow: bool) -> Path:
        """Return the path that `resolve` returns, also for a link to a secret file.

        Raise `ToolFailure` if the path is empty, invalid or outside the folder.
        """
        if not path.strip() or "\0" in path:
            raise ToolFailure(f"{path!r} is not a path: name a file below the working folder, for example README.md")
        try:
            full = self.path / Path(path).expanduser()
            real_path = full.resolve() if follow or full.name == ".." else full.parent.resolve() / full.name
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown ~user, a lone surrogate
            raise ToolFailure(f"{path!r} is not a usable path: {error}") from error
        if not real_path.is_relative_to(self.path):
            raise ToolFailure(
                f"{path!r} is outside the working folder {self.path}: use a path below it, relative to it"
            )
        return real_path

    def name(self, real_path: Path) -> str:
        """Return a resolved path relative to the folder, with forward slashes."""
        return real_path.relative_to(self.path).as_posix()

    def label(self, folder: Path) -> str:
        """Return a folder's name for messages: its relative path, or `the working folder`."""
        return "the working folder" if folder == self.path else self.name(folder)

    def withholds(self, name: str) -> bool:
        """Whether a file is left out of lists and searches that do not name it."""
        return may_hold_secrets(name) or any(may_fit(name, pattern) for pattern in self._withheld_patterns)

    @contextmanager
    def folder(self, real_path: Path, *, create: bool = False) -> Iterator[int]:
        """Open a resolved folder and yield its file descriptor; `create` makes missing folders.

        Each part is opened without following links, so a link that is created after `resolve` is not followed.
        """
        current = os.open(self.path, _FOLDER)
        try:
            for part in real_path.relative_to(self.path).parts:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=current)
                inner = os.open(part, _FOLDER, dir_fd=current)
                os.close(current)
                current = inner
            yield current
        finally:
            os.close(current)


@lru_cache(maxsize=20_000)
def may_hold_secrets(name: str) -> bool:
    """Whether a path or pattern names files with keys or secrets, or files that configure what may run."""
    return bool(secret_reference_in(name, "path"))


def read_bytes(root: Root, real_path: Path, limit: int = MAX_READ_BYTES) -> bytes:
    """Return the bytes of a resolved file.

    Raises:
        OSError: the file cannot be opened, or is a link.
        ToolFailure: it is a pipe or a device, or has more than `limit` bytes.
    """
    with root.folder(real_path.parent) as folder, open_file(real_path.name, folder) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ToolFailure(
            f"{root.name(real_path)} is too large: it has more than {limit:,} bytes; search it for what you need"
        )
    return data


def open_file(name: str, folder: int) -> BinaryIO:
    """Open a file in an open folder for reading. Raise the errors of `read_bytes`."""
    # Without O_NONBLOCK, opening a pipe that nobody writes to would block for ever.
    file = os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ToolFailure(f"{name} is not a regular file but a pipe, a socket or a device")
    return file


def decode(data: bytes, name: str) -> str:
    """Return UTF-8 bytes as text, without a byte order mark. Raise `NotTextError` if the bytes are not UTF-8."""
    if b"\0" not in data:
        with suppress(UnicodeDecodeError):
            return data.decode("utf-8-sig")
    raise NotTextError(f"{name} is not UTF-8 text: it is binary, or text in another encoding")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without newlines. Only `\n` ends a line."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
