"""The working folder and its files. Nothing outside is opened, and secret files only when named explicitly.

ToolFailure             an answer for the model: what failed, and what to do
├── TooLargeError       a file above the size limit
└── NotTextError        a file that is not UTF-8 text
"""

import mimetypes
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path

from packetgate.tools.policy.patterns import may_fit
from packetgate.tools.policy.rules import Effect, Rule
from packetgate.tools.provenance.roles import sensitive_part

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class ToolFailure(Exception):  # noqa: N818 - named for what the model reads
    """A failure that the model can act on: the answer of a tool that works."""


class TooLargeError(ToolFailure):
    """A file is above the size limit."""


class NotTextError(ToolFailure):
    """A file is not UTF-8 text."""


@contextmanager
def os_failures(task: str) -> Iterator[None]:
    """Turn an `OSError` into a `ToolFailure` that names the task."""
    try:
        yield
    except OSError as error:
        raise ToolFailure(f"cannot {task}: {error.strerror or error}") from error


class Root:
    """One folder that every path of the built-in tools must stay in."""

    def __init__(self, path: Path, rules: Iterable[Rule] = ()) -> None:
        """Args:
        rules: the user's policy. Files that `ai.read` may not read without asking are in no list and no search.
        """
        self._given = path
        self._kept_from_reading = tuple(
            rule.arguments["path"]
            for rule in rules
            if rule.effect is not Effect.ALLOW and "path" in rule.arguments and rule.is_about("ai.read", "ai")
        )

    @cached_property
    def path(self) -> Path:
        """The folder with links resolved. Blocking on first use.

        Raises:
            ToolFailure: it is not a folder.
        """
        real = self._given.expanduser().resolve()
        if not real.is_dir():
            raise ToolFailure(f"the working folder {self._given} is not a folder: start Packetgate in one that exists")
        return real

    def resolve(self, path: str, *, follow: bool = True) -> Path:
        """Return the resolved path for `path`, relative to the folder or absolute; it need not exist.

        Args:
            follow: whether to resolve also a link that the path itself names.

        Raises:
            ToolFailure: it leads out of the folder, or is empty or no path; or a link leads to a secret file, which
                nobody could have been asked about.
        """
        real = self.real(path, follow=follow)
        name = self.name(real)
        if holds_secrets(name) and not holds_secrets(path):
            raise ToolFailure(f"{path!r} leads to {name}, which may hold keys or secrets: name that file itself")
        return real

    def real(self, path: str, *, follow: bool = True) -> Path:
        """Return what `resolve` does, also for a link to a secret file.

        Raises:
            ToolFailure: it leads out of the folder, or is empty or no path.
        """
        if not path.strip():
            raise ToolFailure("the path is empty: name a file below the working folder, for example README.md")
        if "\0" in path:
            raise ToolFailure(f"the path {path!r} holds a NUL byte: name a file below the working folder")
        try:
            given = self.path / Path(path).expanduser()
            real = given.resolve() if follow or given.name == ".." else given.parent.resolve() / given.name
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown ~user, a lone surrogate
            raise ToolFailure(f"{path!r} is not a usable path: {error}") from error
        if not real.is_relative_to(self.path):
            raise ToolFailure(
                f"{path!r} is outside the working folder {self.path}: use a path below it, relative to it"
            )
        return real

    def name(self, real: Path) -> str:
        """Return a resolved path relative to the folder, with forward slashes."""
        return real.relative_to(self.path).as_posix()

    def withholds(self, name: str) -> bool:
        """Whether a file is left out of lists and searches that do not name it."""
        return holds_secrets(name) or any(may_fit(name, pattern) for pattern in self._kept_from_reading)

    @contextmanager
    def folder(self, real: Path, *, create: bool = False) -> Iterator[int]:
        """Open a resolved folder and yield its file descriptor; `create` makes missing folders.

        Each part is opened without following links, so a link created after `resolve` leads nowhere.
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


@lru_cache(maxsize=20_000)
def holds_secrets(name: str) -> bool:
    """Whether a path or pattern names files with keys or secrets, or files that say what may run."""
    return bool(sensitive_part(name, "path"))


def read_bytes(root: Root, real: Path, limit: int) -> bytes:
    """Return the bytes of a resolved file; raises as `read_entry` does, with the file name."""
    with root.folder(real.parent) as folder:
        try:
            return read_entry(real.name, folder, limit)
        except ToolFailure as error:
            raise type(error)(f"{root.name(real)} {error}") from error


def read_part(root: Root, real: Path, limit: int, *, from_end: bool) -> bytes:
    """Return whole lines from the beginning or the end of a resolved file, at most `limit` bytes.

    Raises:
        OSError: it cannot be opened, or is a link.
    """
    with root.folder(real.parent) as folder:
        descriptor = os.open(real.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        if from_end:
            file.seek(-limit, os.SEEK_END)
        data = file.read(limit)
    return data.partition(b"\n")[2] if from_end else data[: data.rfind(b"\n") + 1]


def read_entry(name: str, folder: int, limit: int) -> bytes:
    """Return the bytes of a file in an open folder. The messages of failures do not name it.

    Raises:
        OSError: it cannot be opened, or is a link.
        ToolFailure: it is neither a file nor a folder (a pipe, a device).
        TooLargeError: it has more than `limit` bytes.
    """
    # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise ToolFailure("is not a regular file but a pipe, a socket or a device")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TooLargeError(f"is too large: {max(about.st_size, len(data)):,} bytes, the limit is {limit:,}")
    return data


def decode(data: bytes, name: str) -> str:
    """Return UTF-8 bytes as text, without a byte order mark.

    Raises:
        NotTextError: they are not UTF-8; the message says what they seem to be.
    """
    if b"\0" not in data:
        with suppress(UnicodeDecodeError):
            return data.decode("utf-8-sig")
    by_name = mimetypes.guess_type(name)[0] or ""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        kind = "UTF-16 text"
    elif by_name and not by_name.startswith("text/"):
        kind = f"{by_name}, going by its name"
    else:
        kind = "binary data" if b"\0" in data else "text in another encoding, or binary data"
    raise NotTextError(f"{name} is not UTF-8 text: it seems to be {kind}")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without newlines. Only `\n` ends a line."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
