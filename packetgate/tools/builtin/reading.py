"""The `ai.read` tool."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from packetgate.state.printing import counted
from packetgate.state.routing import Risk
from packetgate.tools.builtin.files import (
    MAX_READ_BYTES,
    NotTextError,
    Root,
    TooLargeError,
    ToolFailure,
    decode,
    lines_of,
    read_bytes,
)
from packetgate.tools.builtin.paths import PathReader, existing
from packetgate.tools.builtin.tool import BuiltinTool, ExistingFile
from packetgate.tools.text.result_store import HANDLE_PREFIX, MAX_SHOWN_CHARS, ResultStore

_HINT_CHARS = 200
"""Characters reserved for the last line, which says how to read the rest."""


@dataclass(frozen=True)
class LineRange:
    """The lines to read, counted from 1; 0 means that a field is not given."""

    first_line: int = 1
    last_line: int = 0
    head: int = 0
    tail: int = 0
    max_lines: int = 2000

    def of(self, total: int, name: str) -> tuple[int, int]:
        """Return the first and the last line to show, of `total` lines.

        Raise `ToolFailure` if there is no such line, or the fields contradict each other.
        """
        if self.tail and (self.head or self.first_line > 1 or self.last_line):
            raise ToolFailure(f"tail={self.tail} is the end of {name}: leave out head, first_line and last_line")
        if self.last_line and self.last_line < self.first_line:
            raise ToolFailure(f"last_line={self.last_line} is before first_line={self.first_line}")
        if self.first_line > total:
            raise ToolFailure(f"{name} has {counted(total, 'line')}: first_line={self.first_line} is beyond its end")
        if self.tail:
            return max(1, total - self.tail + 1), total
        return self.first_line, min(self.last_line or total, self.first_line + (self.head or self.max_lines) - 1, total)


def reading_tools(root: Root, kept: ResultStore | None) -> tuple[BuiltinTool, ...]:
    """Return the tools that read files below `root`, and stored results."""

    def read(
        path: ExistingFile,
        *,
        first_line: Annotated[int, Field(ge=1, description="The line to start at, as 10 in 'lines 10 to 20'.")] = 1,
        last_line: Annotated[
            int, Field(ge=0, description="The line to stop at, as 20 in 'lines 10 to 20'. 0: the end of the file.")
        ] = 0,
        head: Annotated[
            int, Field(ge=0, description="How many lines from the beginning, as 5 in 'the first 5 lines'. 0: all.")
        ] = 0,
        tail: Annotated[
            int, Field(ge=0, description="How many lines from the end, as 20 in 'the last 20 lines'. 0: all.")
        ] = 0,
        max_lines: Annotated[int, Field(ge=1, le=100_000, description="Most lines to return at once.")] = 2000,
    ) -> str:
        """Read a text file: show, open or print what it says, all of it, some lines, or the first or last lines.

        Returns: its UTF-8 text as it is. When that is not the whole file, the last line says, in brackets, how many
        lines there are and how to read on. A path that a cut result names ("kept:...") is that result. Files above
        5 MB, binary files and files outside the working folder are refused.
        """
        lines = LineRange(first_line, last_line, head, tail, max_lines)
        if kept and path.startswith(HANDLE_PREFIX):
            return read_stored(kept, path, lines)
        name, text = read_text(root, path)
        return _shown(text, name, lines)

    return (BuiltinTool(read, Risk.READ, reads_on=True, paths=(PathReader(root, kind="file"),)),)


def read_text(root: Root, path: str, limit: int = MAX_READ_BYTES) -> tuple[str, str]:
    """Return the name and the text of a file of at most `limit` bytes. Blocking.

    Raise `ToolFailure` if it is missing, a folder, not text, too large, or outside the root.
    """
    real = existing(root, path, "file")
    name = root.name(real)
    try:
        return name, decode(read_bytes(root, real, limit), name)
    except TooLargeError as error:
        raise TooLargeError(f"{error}: look for what you need in it with a search") from error


def read_stored(kept: ResultStore, handle: str, wanted: LineRange) -> str:
    """Return lines of a stored result, as many as are shown at once. Blocking.

    Raise `ToolFailure` if this session has no such result, or it is not text, or has no such lines.
    """
    try:
        text = kept.read(handle)
    except UnicodeDecodeError as error:
        raise NotTextError(f"{handle} is not text; the file was saved unchanged") from error
    if text is None:
        raise ToolFailure(f"this session has no result {handle}, or no longer: call the tool that it came from again")
    lines = lines_of(text)
    if not lines:
        return _shown(text, handle, wanted)
    first, last = wanted.of(len(lines), handle)
    count, total = 0, 0
    for line in lines[first - 1 : last]:
        total += len(line) + 1
        if total > MAX_SHOWN_CHARS - _HINT_CHARS:
            break
        count += 1
    return _shown(text, handle, LineRange(first, max_lines=max(1, count)))


def _shown(text: str, name: str, wanted: LineRange) -> str:
    lines = lines_of(text)
    if not lines:
        return f"[{name} is empty]"
    first, last = wanted.of(len(lines), name)
    if (first, last) == (1, len(lines)):
        return text
    rest = f"; read on with first_line={last + 1}" if last < len(lines) else ""
    shown = "\n".join(lines[first - 1 : last])
    return f"{shown}\n[lines {first} to {last} of {counted(len(lines), 'line')} in {name}{rest}]"
