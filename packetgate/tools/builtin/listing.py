"""The `ai.list` and `ai.find` tools."""

import os
import stat
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from packetgate.state.printing import byte_size, counted
from packetgate.state.routing import Risk
from packetgate.tools.builtin.files import Root
from packetgate.tools.builtin.paths import PathReader, existing, matching_paths
from packetgate.tools.builtin.tool import BuiltinTool, ToolAnswer, WhichFiles
from packetgate.tools.builtin.tree import pattern_of, walk

Order = Literal["name", "largest", "smallest", "newest", "oldest"]
_Folder = Annotated[str, Field(description="The folder to look in, for example docs. Left out: the working folder.")]
_Sorted = Annotated[Order, Field(description="What comes first: by name, the largest, smallest, newest or oldest.")]
_MaxResults = Annotated[int, Field(ge=1, le=1_000, description="Most results to return, for example 3 for the top 3.")]
_Hidden = Annotated[bool, Field(description="Also show hidden files, whose names begin with a dot.")]


def listing_tools(root: Root) -> tuple[BuiltinTool, ...]:
    """Return the tools that list and find files below `root`."""

    def list_(
        path: _Folder = ".",
        pattern: WhichFiles = "*",
        *,
        sort: _Sorted = "name",
        recursive: Annotated[bool, Field(description="Also what lies in the folders below.")] = False,
        hidden: _Hidden = False,
        max_results: _MaxResults = 200,
    ) -> ToolAnswer:
        """List the files and folders in a folder, with size and date: what is there, as in a directory listing.

        Returns: each with its size and when it was last changed; of one file just that. Files that may hold keys or
        secrets are counted, and not named, unless the call names them.
        """
        real = existing(root, path)
        if not real.is_dir():
            return _answer([_row(root.name(real), real.lstat())], root.label(real.parent), Counter(), sort, 1)
        # if nothing in the folder matches the pattern, the folders below are listed
        for deep in dict.fromkeys((recursive, True) if pattern != "*" else (recursive,)):
            left_out = Counter[str]()
            entries = walk(root, real, left_out, pattern=pattern, deep=deep, hidden=hidden)
            if rows := [_row(entry.path, entry.status) for entry in entries]:
                break
        where = f"{root.label(real)}{'' if pattern == '*' else f', named {pattern}'}"
        return _answer(rows, where, left_out, sort, max_results)

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
            date | None, Field(description="Only files changed on this day or later, as 2026-01-31.")
        ] = None,
        changed_before: Annotated[
            date | None, Field(description="Only files changed before this day, as 2026-01-31.")
        ] = None,
        changed_within_days: Annotated[
            int, Field(ge=0, le=36_500, description="Only files changed in so many days: 1 is today, 7 this week.")
        ] = 0,
        sort: _Sorted = "name",
        hidden: _Hidden = False,
        max_results: _MaxResults = 200,
    ) -> ToolAnswer:
        """Find files and folders by name, type, size or date: where is a file, which are largest, newest, oldest.

        Returns: each path, from all folders below, with its size and the date when it was last changed. A name that
        is nearly right is found as well.
        """
        real, left_out, nearest = existing(root, path, "folder"), Counter[str](), tuple[str, ...]()
        entries = walk(root, real, left_out, pattern=pattern_of(name), hidden=hidden)
        rows = [_row(entry.path, entry.status) for entry in entries]
        if not rows:
            matches = matching_paths(root, name, "any")
            below = [one for one in matches.names if (root.path / one).is_relative_to(real)]
            rows, nearest = [_row(one, (root.path / one).lstat()) for one in below], matches.nearest
        today = datetime.now().date()
        since = today - timedelta(days=changed_within_days - 1) if changed_within_days else date.min
        since = max(since, changed_after or date.min)
        if larger_than or smaller_than or changed_after or changed_before or changed_within_days:
            fitting = [
                row
                for row in rows
                if row.kind == "file"
                and (not larger_than or row.size > larger_than)
                and (not smaller_than or row.size < smaller_than)
                and since <= row.changed.date() < (changed_before or date.max)
            ]
        else:
            fitting = [row for row in rows if name != "*" or row.kind != "folder"]
        where = f"{root.label(real)}{'' if name == '*' else f', named like {name}'}"
        answer = _answer(fitting, where, left_out, sort, max_results)
        hint = f" Nearest: {', '.join(nearest)}" if nearest and not rows else ""
        return answer._replace(text=f"{answer.text}{hint}")

    return (
        BuiltinTool(list_, Risk.READ, named="list", paths=(PathReader(root, kind="any"),)),
        BuiltinTool(find, Risk.READ, paths=(PathReader(root, kind="folder"),), takes_kind="name"),
    )


@dataclass(frozen=True)
class _Row:
    path: str
    kind: str
    size: int
    """Bytes; 0 for a folder."""
    changed: datetime
    """Local time."""

    @property
    def line(self) -> str:
        if self.kind == "folder":
            return f"{self.path}/  (folder, changed {self.changed:%Y-%m-%d %H:%M})"
        exact = counted(self.size, "byte")
        size = exact if self.size < 1_000_000 else f"{byte_size(self.size)}, {exact}"
        return f"{self.path}  ({'link, ' * (self.kind == 'link')}{size}, changed {self.changed:%Y-%m-%d %H:%M})"


def _row(path: str, status: os.stat_result) -> _Row:
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(status.st_mode), "device")
    return _Row(path, kind, 0 if kind == "folder" else status.st_size, datetime.fromtimestamp(status.st_mtime))


def _answer(rows: list[_Row], where: str, left_out: Counter[str], order: Order, limit: int) -> ToolAnswer:
    if order in ("largest", "smallest"):
        rows = sorted(rows, key=lambda row: row.size, reverse=order == "largest")
    elif order in ("newest", "oldest"):
        rows = sorted(rows, key=lambda row: row.changed, reverse=order == "newest")
    shown = rows[:limit]
    folders = sum(row.kind == "folder" for row in rows)
    parts = [counted(number, noun) for number, noun in ((len(rows) - folders, "file"), (folders, "folder")) if number]
    cut = f", the {'first' if order == 'name' else order} {len(shown):,}" if len(shown) < len(rows) else ""
    head = f"{' and '.join(parts) or 'NOTHING FOUND'} in {where}{cut}{':' if shown else '.'}"
    not_shown = {why: number for why, number in left_out.items() if number}
    more = [f"[not shown: {', '.join(f'{number:,} {why}' for why, number in not_shown.items())}]"] if not_shown else []
    entries = [
        {"path": row.path, "kind": row.kind, "size": row.size, "changed": row.changed.isoformat(timespec="seconds")}
        for row in shown
    ]
    data = {"found": len(rows), "entries": entries, "not_shown": not_shown}
    return ToolAnswer("\n".join([head, *(row.line for row in shown), *more]), data)
