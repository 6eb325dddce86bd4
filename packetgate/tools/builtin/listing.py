"""What `ai.list` and `ai.find` do."""

import os
import stat
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from packetgate.state.printing import byte_size, counted
from packetgate.tools.builtin.failures import ToolFailure, os_failures
from packetgate.tools.builtin.kinds import pattern_of
from packetgate.tools.builtin.naming import meant_by
from packetgate.tools.builtin.paths import missing
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.tool import Answer
from packetgate.tools.builtin.tree import walk

Order = Literal["name", "largest", "smallest", "newest", "oldest"]


class Listed(NamedTuple):
    """A file, a folder or a link, as it is told."""

    path: str
    kind: str
    size: int
    """In bytes; 0 of a folder."""
    changed: datetime
    """In local time."""

    @property
    def line(self) -> str:
        """One line of a listing."""
        if self.kind == "folder":
            return f"{self.path}/  (folder, changed {self.changed:%Y-%m-%d %H:%M})"
        kind = "link, " if self.kind == "link" else ""
        return f"{self.path}  ({kind}{_size(self.size)}, changed {self.changed:%Y-%m-%d %H:%M})"

    def as_data(self) -> dict[str, Any]:
        """The same for programs."""
        changed = self.changed.isoformat(timespec="seconds")
        return {"path": self.path, "kind": self.kind, "size": self.size, "changed": changed}


@dataclass(frozen=True)
class Limits:
    """What a file must be like to be found; 0 and None stand for nothing said."""

    larger_than: int = 0
    smaller_than: int = 0
    changed_after: date | None = None
    changed_before: date | None = None
    changed_within_days: int = 0

    def hold(self, one: Listed) -> bool:
        """Whether a file is like that; a folder is only where nothing is said."""
        if self == Limits():
            return True
        today = datetime.now().date()
        since = today - timedelta(days=self.changed_within_days - 1) if self.changed_within_days else date.min
        return (
            one.kind == "file"
            and (not self.larger_than or one.size > self.larger_than)
            and (not self.smaller_than or one.size < self.smaller_than)
            and max(since, self.changed_after or date.min) <= one.changed.date()
            and (self.changed_before is None or one.changed.date() < self.changed_before)
        )


@dataclass(frozen=True)
class View:
    """How what is found is shown."""

    order: Order = "name"
    most: int = 200
    hidden: bool = False
    """Whether names that begin with a dot are shown too."""

    def answer(self, found: list[Listed], where: str, left_out: Counter[str]) -> Answer:
        """Return what was found, as a person and as a program reads it."""
        shown = self._ordered(found)[: self.most]
        files, folders = sum(one.kind != "folder" for one in found), sum(one.kind == "folder" for one in found)
        parts = [counted(files, "file")] * bool(files) + [counted(folders, "folder")] * bool(folders)
        cut = (
            f", the {'first' if self.order == 'name' else self.order} {len(shown):,}" if len(shown) < len(found) else ""
        )
        head = f"{' and '.join(parts) or 'NOTHING FOUND'} in {where}{cut}"
        not_shown = {why: number for why, number in left_out.items() if number}
        more = ", ".join(f"{number:,} {why}" for why, number in not_shown.items())
        lines = [f"{head}{':' if shown else '.'}", *(one.line for one in shown), *[f"[not shown: {more}]"] * bool(more)]
        entries = [one.as_data() for one in shown]
        return Answer("\n".join(lines), {"found": len(found), "entries": entries, "not_shown": not_shown})

    def _ordered(self, found: list[Listed]) -> list[Listed]:
        match self.order:
            case "largest" | "smallest":
                return sorted(found, key=lambda one: one.size, reverse=self.order == "largest")
            case "newest" | "oldest":
                return sorted(found, key=lambda one: one.changed, reverse=self.order == "newest")
        return found


def list_folder(root: Root, path: str, pattern: str, view: View, *, deep: bool) -> Answer:
    """Return what a folder holds, or what there is to say of one file. Blocking.

    Where nothing in the folder fits the pattern, what lies in the folders below is returned.

    Raises:
        ToolFailure: it does not exist, or is outside the root.
    """
    real = root.resolve(path)
    with os_failures(f"list {root.name(real)}"):
        if not real.exists():
            raise missing(root, real, "any")
        if not real.is_dir():
            return view.answer([_listed(root.name(real), real.lstat())], where_of(root, real.parent), Counter())
        where = f"{where_of(root, real)}{'' if pattern == '*' else f', named {pattern}'}"
        for below in dict.fromkeys((deep, True) if pattern != "*" else (deep,)):
            left_out = Counter[str]()
            found = _found(root, real, left_out, pattern, deep=below, hidden=view.hidden)
            if found:
                break
    return view.answer(found, where, left_out)


def find_files(root: Root, name: str, path: str, limits: Limits, view: View) -> Answer:
    """Return the files and folders below a folder that have such a name, such a size or such a date. Blocking.

    Raises:
        ToolFailure: the folder does not exist, or is outside the root.
    """
    real = root.resolve(path)
    left_out = Counter[str]()
    with os_failures(f"look into {root.name(real)}"):
        if not real.exists():
            raise missing(root, real, "folder")
        if not real.is_dir():
            raise ToolFailure(f"{root.name(real)} is a file, not a folder: leave `path` out, or name a folder")
        found = _found(root, real, left_out, pattern_of(name), deep=True, hidden=view.hidden)
        if not found:
            nearly = meant_by(root, name, "any")
            below = [one for one in nearly.names if (root.path / one).is_relative_to(real)]
            found = [_listed(one, (root.path / one).lstat()) for one in below]
    fitting = [one for one in found if limits.hold(one) and (name != "*" or one.kind != "folder")]
    where = f"{where_of(root, real)}{'' if name == '*' else f', named like {name}'}"
    answer = view.answer(fitting, where, left_out)
    if not found and nearly.nearest:
        return answer._replace(text=f"{answer.text} Near to it: {', '.join(nearly.nearest)}")
    return answer


def _size(number: int) -> str:
    exact = counted(number, "byte")
    return exact if number < 1_000_000 else f"{byte_size(number)}, {exact}"


def where_of(root: Root, folder: Path) -> str:
    """Return a folder as it is told."""
    return "the working folder" if folder == root.path else root.name(folder)


def _found(root: Root, real: Path, left_out: Counter[str], pattern: str, *, deep: bool, hidden: bool) -> list[Listed]:
    entries = walk(root, real, left_out, pattern=pattern, deep=deep, hidden=hidden)
    return [_listed(entry.path, entry.about) for entry in entries]


def _listed(path: str, about: os.stat_result) -> Listed:
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    kind = kinds.get(stat.S_IFMT(about.st_mode), "device")
    size = 0 if kind == "folder" else about.st_size
    return Listed(path, kind, size, datetime.fromtimestamp(about.st_mtime))
