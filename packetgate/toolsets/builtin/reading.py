"""The tools that read, list and find: `ai.read`, `ai.list` and `ai.find`."""

import math
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from packetgate.state.printing import byte_size, counted
from packetgate.state.routing import Risk
from packetgate.tools.text.result_store import HANDLE_PREFIX, MAX_SHOWN_CHARS, ResultStore
from packetgate.toolsets.builtin.files import (
    MAX_READ_BYTES,
    NotTextError,
    Root,
    ToolFailure,
    decode,
    lines_of,
    read_bytes,
)
from packetgate.toolsets.builtin.paths import PathParameter, existing_path, matching_paths
from packetgate.toolsets.builtin.tool import BuiltinTool, ExistingFile, MaxResults, ToolAnswer, WhichFiles
from packetgate.toolsets.builtin.tree import TreeEntry, name_pattern, skipped_text, walk

_HINT_CHARS = 200
"""Characters reserved for the last line, which says how to read the rest."""
MAX_LINES = 2_000
"""Maximum lines returned at once, unless the call asks for more."""

Order = Literal["name", "largest", "smallest", "newest", "oldest"]
_Folder = Annotated[str, Field(description="The folder to look in, for example docs. Left out: the working folder.")]
_Sorted = Annotated[Order, Field(description="What comes first: by name, the largest, smallest, newest or oldest.")]
_Day = date | SkipJsonSchema[None]
_Hidden = Annotated[bool, Field(description="Also show hidden files, whose names begin with a dot.")]


@dataclass(frozen=True)
class LineRange:
    """The requested lines, counted from 1; 0 means that a field is not set."""

    first_line: int = 1
    last_line: int = 0
    head: int = 0
    tail: int = 0

    def excerpt(self, name: str, text: str, max_chars: int | None = None) -> str:
        """Return the requested lines of a text, at most `max_chars` characters, and how to read on.

        Raise `ToolFailure` if the text has no such line, or the fields contradict each other.
        """
        lines = lines_of(text)
        if not lines:
            return f"[{name} is empty]"
        if self.tail and (self.head or self.first_line > 1 or self.last_line):
            raise ToolFailure(f"tail={self.tail} reads the end of {name}: leave out head, first_line and last_line")
        if self.last_line and self.last_line < self.first_line:
            raise ToolFailure(f"last_line={self.last_line} is before first_line={self.first_line}")
        if self.first_line > len(lines):
            raise ToolFailure(
                f"{name} has {counted(len(lines), 'line')}: first_line={self.first_line} is beyond its end"
            )
        first = max(1, len(lines) - self.tail + 1) if self.tail else self.first_line
        count = self.tail or self.head or MAX_LINES
        last = min(self.last_line or len(lines), first + count - 1, len(lines))
        if max_chars:
            ends = accumulate(len(line) + 1 for line in lines[first - 1 : last])
            last = max(first, first - 1 + sum(end <= max_chars for end in ends))
        if (first, last) == (1, len(lines)):
            return text
        rest = f"; read on with first_line={last + 1}" if last < len(lines) else ""
        shown = "\n".join(lines[first - 1 : last])
        return f"{shown}\n[lines {first} to {last} of {counted(len(lines), 'line')} in {name}{rest}]"


def reading_tools(root: Root, results: ResultStore | None) -> tuple[BuiltinTool, ...]:
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
    ) -> str:
        """Read a text file: show, open or print what it says, all of it, some lines, or the first or last lines.

        Returns: its UTF-8 text as it is. When that is not the whole file, the last line says, in brackets, how many
        lines there are and how to read on. A path that a cut result names ("kept:...") is that result. Files above
        5 MB, binary files and files outside the working folder are refused.
        """
        lines = LineRange(first_line, last_line, head, tail)
        if results and path.startswith(HANDLE_PREFIX):
            return read_stored(results, path, lines)
        return lines.excerpt(*read_text(root, path))

    return (BuiltinTool(read, Risk.READ, supports_paging=True, paths=(PathParameter(root, kind="file"),)),)


def read_text(root: Root, path: str, limit: int = MAX_READ_BYTES) -> tuple[str, str]:
    """Return the name and the text of a file of at most `limit` bytes. Blocking.

    Raise `ToolFailure` if it is missing, a folder, not text, too large, or outside the root.
    """
    real_path = existing_path(root, path, "file")
    name = root.name(real_path)
    return name, decode(read_bytes(root, real_path, limit), name)


def read_stored(results: ResultStore, handle: str, lines: LineRange) -> str:
    """Return the requested lines of a stored result, at most `MAX_SHOWN_CHARS` characters. Blocking.

    Raise `ToolFailure` if this session has no such result, or the result is not text or has no such lines.
    """
    try:
        text = results.read(handle)
    except UnicodeDecodeError as error:
        raise NotTextError(f"{handle} is not text; the file was saved unchanged") from error
    if text is None:
        raise ToolFailure(f"this session has no stored result {handle} any more: call the tool that returned it again")
    return lines.excerpt(handle, text, MAX_SHOWN_CHARS - _HINT_CHARS)


def listing_tools(root: Root) -> tuple[BuiltinTool, ...]:
    """Return the tools that list and find files below `root`."""

    def list_(
        path: _Folder = ".",
        pattern: WhichFiles = "*",
        *,
        sort: _Sorted = "name",
        recursive: Annotated[bool, Field(description="Also what lies in the folders below.")] = False,
        hidden: _Hidden = False,
        max_results: MaxResults = 200,
    ) -> ToolAnswer:
        """List the files and folders in a folder, with size and date: what is there, as in a directory listing.

        Returns: each with its size and when it was last changed; of one file just that. Files that may hold keys or
        secrets are counted, and not named, unless the call names them.
        """
        real_path, skipped = existing_path(root, path), Counter[str]()
        if not real_path.is_dir():
            return _answer([_entry_at(root, real_path)], root.label(real_path.parent), skipped, sort, 1)
        rows = [*walk(root, real_path, skipped, pattern=pattern, deep=recursive, hidden=hidden)]
        if not rows and pattern != "*" and not recursive:  # search the folders below, too
            skipped.clear()
            rows = [*walk(root, real_path, skipped, pattern=pattern, hidden=hidden)]
        where = f"{root.label(real_path)}{'' if pattern == '*' else f', named {pattern}'}"
        return _answer(rows, where, skipped, sort, max_results)

    def find(
        name: Annotated[
            str,
            Field(
                min_length=1,
                max_length=300,
                description="The name, a part of it, or a pattern such as *.csv. Left out: any name.",
            ),
        ] = "*",
        path: _Folder = ".",
        *,
        larger_than: Annotated[int, Field(ge=0, description="Only files of more bytes, as 1000000 for 1 MB.")] = 0,
        smaller_than: Annotated[int, Field(ge=0, description="Only files of fewer bytes. 0: any size.")] = 0,
        changed_after: Annotated[
            _Day, Field(description="Only files changed on this day or later, as 2026-01-31.")
        ] = None,
        changed_before: Annotated[_Day, Field(description="Only files changed before this day, as 2026-01-31.")] = None,
        changed_within_days: Annotated[
            int, Field(ge=0, le=36_500, description="Only files changed in so many days: 1 is today, 7 this week.")
        ] = 0,
        sort: _Sorted = "name",
        hidden: _Hidden = False,
        max_results: MaxResults = 200,
    ) -> ToolAnswer:
        """Find files and folders by name, type, size or date: where is a file, which are largest, newest, oldest.

        Returns: each path, from all folders below, with its size and the date when it was last changed. A name that
        is nearly right is found as well.
        """
        real_path, skipped, nearest = existing_path(root, path, "folder"), Counter[str](), tuple[str, ...]()
        rows = [*walk(root, real_path, skipped, pattern=name_pattern(name), hidden=hidden)]
        if not rows:
            matches = matching_paths(root, name, "any")
            below = [root.path / path for path in matches.names]
            rows = [_entry_at(root, path) for path in below if path.is_relative_to(real_path)]
            nearest = matches.nearest
        days = timedelta(days=changed_within_days - 1)
        first_day = max(changed_after or date.min, date.today() - days if changed_within_days else date.min)
        if larger_than or smaller_than or changed_before or first_day != date.min:
            matching = [
                row
                for row in rows
                if row.is_file
                and (larger_than or -1) < row.size < (smaller_than or math.inf)
                and first_day <= row.changed.date() < (changed_before or date.max)
            ]
        else:
            matching = [row for row in rows if name != "*" or not row.is_folder]
        where = f"{root.label(real_path)}{'' if name == '*' else f', named like {name}'}"
        answer = _answer(matching, where, skipped, sort, max_results)
        hint = f" Nearest: {', '.join(nearest)}" if nearest and not rows else ""
        return answer._replace(text=f"{answer.text}{hint}")

    return (
        BuiltinTool(list_, Risk.READ, own_name="list", paths=(PathParameter(root, kind="folder"),)),
        BuiltinTool(find, Risk.READ, paths=(PathParameter(root, kind="folder"),), kind_parameter="name"),
    )


def _entry_at(root: Root, real_path: Path) -> TreeEntry:
    return TreeEntry(root.name(real_path), real_path.lstat())


def _line(entry: TreeEntry) -> str:
    changed = f"changed {entry.changed:%Y-%m-%d %H:%M}"
    if entry.is_folder:
        return f"{entry.path}/  (folder, {changed})"
    exact = counted(entry.size, "byte")
    size = exact if entry.size < 1_000_000 else f"{byte_size(entry.size)}, {exact}"
    return f"{entry.path}  ({'link, ' * (entry.kind == 'link')}{size}, {changed})"


def _answer(rows: list[TreeEntry], where: str, skipped: Counter[str], order: Order, limit: int) -> ToolAnswer:
    if order in ("largest", "smallest"):
        rows = sorted(rows, key=lambda row: row.size, reverse=order == "largest")
    elif order in ("newest", "oldest"):
        rows = sorted(rows, key=lambda row: row.changed, reverse=order == "newest")
    shown = rows[:limit]
    folders = sum(row.is_folder for row in rows)
    parts = [counted(number, noun) for number, noun in ((len(rows) - folders, "file"), (folders, "folder")) if number]
    cut = f", the {'first' if order == 'name' else order} {len(shown):,}" if len(shown) < len(rows) else ""
    head = f"{' and '.join(parts) or 'NOTHING FOUND'} in {where}{cut}{':' if shown else '.'}"
    more = [f"[not shown: {skipped_text(skipped)}]"] if skipped.total() else []
    entries = [
        {"path": row.path, "kind": row.kind, "size": row.size, "changed": row.changed.isoformat(timespec="seconds")}
        for row in shown
    ]
    data = {"found": len(rows), "entries": entries, "not_shown": dict(+skipped)}
    return ToolAnswer("\n".join([head, *map(_line, shown), *more]), data)
