"""The paths in a call of a built-in tool, as they were meant: what is checked and approved is what is opened."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from packetgate.tools.builtin.files import Root, ToolFailure
from packetgate.tools.builtin.tree import WITHHELD, walk
from packetgate.tools.provenance.values import squeezed
from packetgate.tools.text.kept import PREFIX

Kind = Literal["file", "folder", "any"]

DESTINATION = "destination"
_NAMES_SHOWN = 20
ALIKE = 0.85
"""Likeness from which on a name counts as another one, misspelt."""
NEAR = 0.6
SHORT = 4
"""Letters of a name below which nothing is said of its likeness."""
MOST_SHOWN = 8
_MARKS = re.compile(r"\d+|(?<![^\W_])[^\W\d_](?![^\W_])")
_FILLERS = frozenset(
    "a an the my our your this that to of for in about on from with file folder directory document called named".split()
)


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


class Meant(NamedTuple):
    """What a name may stand for."""

    names: tuple[str, ...] = ()
    """Paths that it fits: one, or several that it fits equally well."""
    nearest: tuple[str, ...] = ()
    """Where it fits none."""


def meant_by(root: Root, path: str, kind: Kind, *, careful: bool = False) -> Meant:
    """Return what a path stands for that is not there: a base name, a name without its ending, a misspelling. Blocking.

    What is withheld is never found so: whoever wants it names it.

    Args:
        careful: nothing misspelt is taken for another name, and nothing in another folder than the one that is named.

    Raises:
        ToolFailure: the working folder cannot be read.
    """
    try:
        entries = [entry for entry in walk(root, root.path, Counter()) if _is(entry.is_file, entry.is_folder, kind)]
    except OSError as error:
        raise ToolFailure(f"cannot look into the working folder: {error.strerror or error}") from error
    names = [entry.path for entry in entries]
    said = path.strip().strip("/").removeprefix("./").casefold()
    bare = _bare(said)
    for fits in _readings(said, bare, in_place=careful and "/" in said):
        found = tuple(name for name in names if fits(name.casefold()))
        if found:
            return Meant(found)
    meant = _misspelt(said, names)
    return Meant(nearest=(*meant.names, *meant.nearest)) if careful else meant


def _is(is_file: bool, is_folder: bool, kind: Kind) -> bool:
    return (is_file and kind != "folder") or (is_folder and kind != "file")


def _readings(said: str, bare: str, *, in_place: bool) -> Iterable[Callable[[str], bool]]:
    base = said.rpartition("/")[2]
    yield lambda name: name == said
    yield lambda name: name.endswith(f"/{said}")
    if in_place:
        return
    yield lambda name: name.rpartition("/")[2] == base
    if bare:
        yield lambda name: squeezed(name) == bare
        yield lambda name: squeezed(name.rpartition("/")[2]) == bare
        yield lambda name: squeezed(_stem(name)) == bare
        yield lambda name: squeezed(_stem(name)) in {f"{bare}s", bare.removesuffix("s")}
    words = _words(base.split())
    if words:
        yield lambda name: words <= _words_of_path(name) and bool(words & _words_of_path(name.rpartition("/")[2]))
    if len(words) > 1:
        yield lambda name: len(squeezed(_stem(name))) >= SHORT and _words(re.split(r"[\W_]+", _stem(name))) <= words


def _misspelt(said: str, names: list[str]) -> Meant:
    scored = sorted(((_likeness(said, name.casefold()), name) for name in names), key=lambda one: (-one[0], one[1]))
    best = scored[0][0] if scored else 0.0
    if best >= ALIKE:
        return Meant(tuple(name for score, name in scored if score == best and _numbered_alike(said, name)))
    return Meant(nearest=tuple(name for score, name in scored[:MOST_SHOWN] if score >= NEAR))


def _likeness(said: str, name: str) -> float:
    ending, base = Path(said).suffix, name.rpartition("/")[2]
    same_ending = not ending or base.endswith(ending)
    own, form = (
        _bare(said.removesuffix(ending) if same_ending else said),
        squeezed(_stem(base) if same_ending else base),
    )
    return max(_alike(one, form) for one in {own, *_words(said.split())})


def _alike(own: str, form: str) -> float:
    if min(len(own), len(form)) < SHORT:
        return 0.0
    turned = sorted(own) == sorted(form) and own[0] == form[0]  # letters in another order
    matcher = SequenceMatcher(None, own, form)
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < NEAR:
        return 0.0
    return max(matcher.ratio(), ALIKE * turned)


def _numbered_alike(said: str, name: str) -> bool:
    own, other = (Counter(_MARKS.findall(one.casefold().rpartition("/")[2])) for one in (said, name))
    return own == other


def _bare(said: str) -> str:
    words = said.rpartition("/")[2].split()
    return squeezed(" ".join([word for word in words if word not in _FILLERS] or words))


def _words(parts: Iterable[str]) -> frozenset[str]:
    return frozenset(squeezed(part).removesuffix("s") for part in parts if part not in _FILLERS) - {""}


def _words_of_path(name: str) -> frozenset[str]:
    return _words([*re.split(r"[\W_]+", name), squeezed(_stem(name))])


def _stem(name: str) -> str:
    return Path(name).stem
