"""The paths in a call of a built-in tool, as they were meant: what is checked and approved is what is opened."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from packetgate.tools.builtin.failures import ToolFailure
from packetgate.tools.builtin.naming import Kind, meant_by
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.tree import WITHHELD, walk
from packetgate.tools.text.kept import PREFIX

DESTINATION = "destination"
_NAMES_SHOWN = 20


@dataclass(frozen=True)
class PathReader:
    """Reads the path in one parameter of a tool."""

    root: Root
    parameter: str = "path"
    kind: Kind | None = None
    """What must be there under that name; None: nothing need be there yet."""
    follow: bool = True
    """Whether a link stands for what it leads to."""
    careful: bool = False
    """Whether only what is surely meant will do, since it is moved, replaced or deleted."""
    unless: tuple[str, str] = ("", "")
    """The parameter and its value, given or not, with which nothing need be there."""

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with the path of what is really there, as they are where that is not clear. Blocking."""
        path = params.get(self.parameter)
        if not isinstance(path, str) or path.startswith(PREFIX):
            return dict(params)
        other, new = self.unless
        must_exist = self.kind is not None and not (other and params.get(other, new) == new)
        try:
            name = self._name(path, must_exist=must_exist)
        except (ToolFailure, OSError):
            return dict(params)
        return {**params, self.parameter: name}

    def finds(self, params: Mapping[str, Any]) -> bool:
        """Whether the path in the arguments, read as it is meant, leads to what is wanted. Blocking."""
        path = self.read(params).get(self.parameter)
        if not isinstance(path, str) or path.startswith(PREFIX):
            return True
        try:
            return self._is_wanted(self.root.real(path, follow=self.follow))
        except (ToolFailure, OSError):
            return False

    def knows(self, word: str) -> float:
        """Return how surely a word names what is there, of the kind that is wanted. Blocking.

        1: just as it is written; a half: but for its ending and capitals, in the working folder itself; -1: what is
        there under that name is of the other kind.
        """
        try:
            real = self.root.real(word, follow=self.follow)
            if real.exists():
                return 1.0 if self._is_wanted(real) else -1.0
            folder = self.root.path
            alike = _by_stem(folder, folder.stat().st_mtime_ns).get(word.casefold(), ())
        except (ToolFailure, OSError):
            return 0.0
        return 0.5 * any(map(self._is_wanted, alike))

    def _is_wanted(self, real: Path) -> bool:
        return real.is_file() if self.kind == "file" else real.is_dir() if self.kind == "folder" else real.exists()

    def _name(self, path: str, *, must_exist: bool) -> str:
        real = self.root.real(path, follow=self.follow)
        if must_exist and not real.exists() and not real.is_symlink():
            names = meant_by(self.root, path, self.kind or "any", careful=self.careful).names
            return names[0] if len(names) == 1 else path
        name = self.root.name(real)
        if name in (str(PurePosixPath(path)), "."):
            return path
        if self.parameter == DESTINATION:  # where a bare name, or a slash at the end, has a meaning of its own
            name = f"{name if '/' in name else f'./{name}'}{'/' * path.endswith('/')}"
        return name


@lru_cache(maxsize=4)
def _by_stem(folder: Path, changed_at: int) -> dict[str, list[Path]]:
    """Return what lies in a folder by its names without their endings; listed anew when the folder has changed."""
    found: dict[str, list[Path]] = {}
    for one in folder.iterdir():
        found.setdefault(one.stem.casefold(), []).append(one)
    return found


def missing(root: Root, real: Path, kind: Kind) -> ToolFailure:
    """Return that a resolved path does not exist, and what may be meant by it. Blocking."""
    name = root.name(real)
    meant = meant_by(root, name, kind)
    if len(meant.names) > 1:
        return ToolFailure(f"{name} may be one of: {', '.join(meant.names)}. Say which")
    while not real.parent.is_dir():
        real = real.parent
    where = "the working folder" if real.parent == root.path else root.name(real.parent)
    hint = ", ".join(meant.names or meant.nearest)
    told = f"Near to it: {hint}" if hint else entries_line(root, real.parent)
    return ToolFailure(f"{root.name(real)} does not exist in {where}. {told}")


def entries_line(root: Root, folder: Path) -> str:
    """Return what a resolved folder holds, in one line. Blocking."""
    left_out = Counter[str]()
    names = [entry.name for entry in walk(root, folder, left_out, deep=False)]
    if not names:
        return "Nothing is shown in it." if left_out[WITHHELD] else "It is empty."
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return f"It holds: {', '.join(names[:_NAMES_SHOWN])}{more}"
