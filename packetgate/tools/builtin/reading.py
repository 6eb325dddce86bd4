"""What `ai.read` does."""

from dataclasses import dataclass

from packetgate.state.printing import counted
from packetgate.tools.builtin.failures import NotTextError, TooLargeError, ToolFailure, os_failures
from packetgate.tools.builtin.paths import entries_line, missing
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.text import decode, lines_of, read_bytes, read_part
from packetgate.tools.text.kept import SHOWN_CHARS, KeptResults

MAX_READ_BYTES = 5_000_000
ROOM_CHARS = 200
"""For the last line, which tells how to read on."""


@dataclass(frozen=True)
class Lines:
    """Which lines are wanted, counted from 1; 0 stands for nothing said."""

    first_line: int = 1
    last_line: int = 0
    head: int = 0
    tail: int = 0
    max_lines: int = 2000

    def of(self, total: int, name: str) -> tuple[int, int]:
        """Return the first and the last of so many lines.

        Raises:
            ToolFailure: there is no such line, or more is said than can be true at once.
        """
        if self.tail and (self.head or self.first_line > 1 or self.last_line):
            raise ToolFailure(f"tail={self.tail} is the end of {name}: leave out head, first_line and last_line")
        if self.last_line and self.last_line < self.first_line:
            raise ToolFailure(f"last_line={self.last_line} is before first_line={self.first_line}")
        if self.first_line > total:
            raise ToolFailure(f"{name} has {counted(total, 'line')}: first_line={self.first_line} is beyond its end")
        first = max(1, total - self.tail + 1) if self.tail else self.first_line
        last = min(self.last_line or total, first + (self.head or self.max_lines) - 1, total)
        return first, total if self.tail else last


def read_text(root: Root, path: str, wanted: Lines) -> str:
    """Return lines of a file; when it is not the whole file, a last line in brackets says what is missing.

    Raises:
        ToolFailure: it is missing, a folder, not text, too large, outside the root, or has no such lines.
    """
    try:
        name, text = whole_text(root, path)
    except TooLargeError:
        if not (wanted.tail or wanted.head or wanted.last_line):
            raise
        return _part(root, path, wanted)
    return _lines(text, name, wanted)


def _part(root: Root, path: str, wanted: Lines) -> str:
    """Return lines from the beginning or the end of a file that is too large to be read whole."""
    real = root.resolve(path)
    name = root.name(real)
    with os_failures(f"read {name}"):
        text = decode(read_part(root, real, MAX_READ_BYTES, from_end=bool(wanted.tail)), name)
    lines = lines_of(text)
    try:
        first, last = wanted.of(len(lines), f"the part of {name} that can be read")
    except ToolFailure as error:
        raise TooLargeError(f"{error}; read a part of it with a command") from error
    which = f"the last {last - first + 1} lines" if wanted.tail else f"lines {first} to {last}"
    shown = "\n".join(lines[first - 1 : last])
    return f"{shown}\n[{which} of {name}, which has more than {MAX_READ_BYTES:,} bytes]"


def whole_text(root: Root, path: str, limit: int = MAX_READ_BYTES) -> tuple[str, str]:
    """Return the name of a file and its text, of so many bytes at most. Blocking.

    Raises:
        ToolFailure: it is missing, a folder, not text, too large, or outside the root.
    """
    real = root.resolve(path)
    name = root.name(real)
    with os_failures(f"read {name}"):
        if real.is_dir():
            raise ToolFailure(f"{name} is a folder, not a file. {entries_line(root, real)}")
        try:
            return name, decode(read_bytes(root, real, limit), name)
        except FileNotFoundError as error:
            raise missing(root, real, "file") from error
        except TooLargeError as error:
            raise TooLargeError(
                f"{error}: read its first or last lines (head, tail), or look for what you need in it with a search"
            ) from error


def read_kept(kept: KeptResults, handle: str, wanted: Lines) -> str:
    """Return lines of a result that was too long to show, as many as are shown at once.

    Raises:
        ToolFailure: this session keeps no such result, or it is no text, or has no such lines.
    """
    try:
        text = kept.read(handle)
    except UnicodeDecodeError as error:
        raise NotTextError(f"{handle} is not text: it is kept for the user, as it came") from error
    if text is None:
        raise ToolFailure(f"{handle} is not kept, or no more, in this session: call the tool that it came from again")
    lines = lines_of(text)
    if not lines:
        return _lines(text, handle, wanted)
    first, last = wanted.of(len(lines), handle)
    most, total = 0, 0
    for line in lines[first - 1 : last]:
        total += len(line) + 1
        if total > SHOWN_CHARS - ROOM_CHARS:
            break
        most += 1
    return _lines(text, handle, Lines(first, max_lines=max(1, most)))


def _lines(text: str, name: str, wanted: Lines) -> str:
    lines = lines_of(text)
    if not lines:
        return f"[{name} is empty]"
    first, last = wanted.of(len(lines), name)
    if (first, last) == (1, len(lines)):
        return text
    rest = f"; read on with first_line={last + 1}" if last < len(lines) else ""
    shown = "\n".join(lines[first - 1 : last])
    return f"{shown}\n[lines {first} to {last} of {counted(len(lines), 'line')} in {name}{rest}]"
