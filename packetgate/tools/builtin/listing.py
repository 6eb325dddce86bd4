"""The `ai.list` and `ai.find` tools."""

import os
import stat
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from packetgate.state.printing import byte_size, counted
from packetgate.state.routing import Risk
from packetgate.tools.builtin.files import Root, ToolFailure, os_failures
from packetgate.tools.builtin.paths import PathReader, matching_paths, missing
from packetgate.tools.builtin.tool import Answer, BuiltinTool, WhichFiles
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
    ) -> Answer:
        """List the files and folders in a folder, with size and date: what is there, as in a directory listing.

        Returns: each with its size and when it was last changed; of one file just that. Files that may hold keys or
        secrets are counted, and not named, unless the call names them.
        """
        real = root.resolve(path)
        with os_failures(f"list {root.name(real)}"):
            if not real.exists():
                raise missing(root, real, "any")
            if not real.is_dir():
                one = [_listed(root.name(real), real.lstat())]
                return _answer(one, folder_label(root, real.parent), Counter(), sort, max_results)
            # where nothing in the folder fits the pattern, what lies in the folders below is listed
            for deep in dict.fromkeys((recursive, True) if pattern != "*" else (recursive,)):
                left_out = Counter[str]()
                entries = walk(root, real, left_out, pattern=pattern, deep=deep, hidden=hidden)
                if listed := [_listed(entry.path, entry.about) for entry in entries]:
                    break
        where = f"{folder_label(root, real)}{'' if pattern == '*' else f', named {pattern}'}"
        return _answer(listed, where, left_out, sort, max_results)

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
    ) -> Answer:
        """Find files and folders by name, type, size or date: where is a file, which are largest, newest, oldest.

        Returns: each path, from all folders below, with its size and the date when it was last changed. A name that
        is nearly right is found as well.
        """
        real, left_out, nearest = root.resolve(path), Counter[str](), tuple[str, ...]()
        with os_failures(f"look into {root.name(real)}"):
            if not real.exists():
                raise missing(root, real, "folder")
            if not real.is_dir():
                raise ToolFailure(f"{root.name(real)} is a file, not a folder: leave `path` out, or name a folder")
            entries = walk(root, real, left_out, pattern=pattern_of(name), hidden=hidden)
            named = [_listed(entry.path, entry.about) for entry in entries]
            if not named:
                meant = matching_paths(root, name, "any")
                below = [one for one in meant.names if (root.path / one).is_relative_to(real)]
                named, nearest = [_listed(one, (root.path / one).lstat()) for one in below], meant.nearest
        today = datetime.now().date()
        since = today - timedelta(days=changed_within_days - 1) if changed_within_days else date.min
        since = max(since, changed_after or date.min)
        any_entry = not (larger_than or smaller_than or changed_after or changed_before or changed_within_days)
        fitting = [
            one
            for one in named
            if (any_entry and (name != "*" or one.kind != "folder"))
            or (
                one.kind == "file"
                and (not larger_than or one.size > larger_than)
                and (not smaller_than or one.size < smaller_than)
                and since <= one.changed.date() < (changed_before or date.max)
            )
        ]
        where = f"{folder_label(root, real)}{'' if name == '*' else f', named like {name}'}"
        answer = _answer(fitting, where, left_out, sort, max_results)
        near = f" Near to it: {', '.join(nearest)}" if nearest and not named else ""
        return answer._replace(text=f"{answer.text}{near}")

    return (
        BuiltinTool(list_, Risk.READ, named="list", paths=(PathReader(root, kind="any"),)),
        BuiltinTool(find, Risk.READ, paths=(PathReader(root, kind="folder"),), takes_kind="name"),
    )


def folder_label(root: Root, folder: Path) -> str:
    """Return the name of a folder in answers."""
    return "the working folder" if folder == root.path else root.name(folder)


@dataclass(frozen=True)
class _Listed:
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


def _listed(path: str, about: os.stat_result) -> _Listed:
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(about.st_mode), "device")
    return _Listed(path, kind, 0 if kind == "folder" else about.st_size, datetime.fromtimestamp(about.st_mtime))


def _answer(listed: list[_Listed], where: str, left_out: Counter[str], order: Order, most: int) -> Answer:
    if order in ("largest", "smallest"):
        listed = sorted(listed, key=lambda one: one.size, reverse=order == "largest")
    elif order in ("newest", "oldest"):
        listed = sorted(listed, key=lambda one: one.changed, reverse=order == "newest")
    shown = listed[:most]
    folders = sum(one.kind == "folder" for one in listed)
    parts = [counted(number, noun) for number, noun in ((len(listed) - folders, "file"), (folders, "folder")) if number]
    cut = f", the {'first' if order == 'name' else order} {len(shown):,}" if len(shown) < len(listed) else ""
    head = f"{' and '.join(parts) or 'NOTHING FOUND'} in {where}{cut}"
    not_shown = {why: number for why, number in left_out.items() if number}
    more = ", ".join(f"{number:,} {why}" for why, number in not_shown.items())
    lines = [f"{head}{':' if shown else '.'}", *(one.line for one in shown), *[f"[not shown: {more}]"] * bool(more)]
    entries = [
        {"path": one.path, "kind": one.kind, "size": one.size, "changed": one.changed.isoformat(timespec="seconds")}
        for one in shown
    ]
    return Answer("\n".join(lines), {"found": len(listed), "entries": entries, "not_shown": not_shown})
