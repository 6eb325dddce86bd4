"""Resolve the paths in a call before it is checked, so that the approved path is the one that is opened."""

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
from packetgate.tools.text.result_store import HANDLE_PREFIX

Kind = Literal["file", "folder", "any"]

DESTINATION = "destination"
_NAMES_SHOWN = 20
ALIKE = 0.85
"""Similarity from which on a name counts as a misspelling of another."""
NEAR = 0.6
SHORT = 4
"""Shorter names, in letters, are never compared by similarity."""
MOST_SHOWN = 8
_MARKS = re.compile(r"\d+|(?<![^\W_])[^\W\d_](?![^\W_])")
_FILLERS = frozenset(
    "a an the my our your this that to of for in about on from with file folder directory document called named".split()
)


@dataclass(frozen=True)
class PathReader:
    """Resolves the path in one parameter of a tool."""

    root: Root
    parameter: str = "path"
    kind: Kind | None = None
    """What must exist under that path; None: it need not exist."""
    follow: bool = True
    """Whether to follow a link that the path names."""
    careful: bool = False
    """Whether to reject misspellings, because the file is moved, replaced or deleted."""
    unless: tuple[str, str] = ("", "")
    """A parameter and the value with which the path need not exist; that value is also its default."""

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with the path that is meant; unchanged where that is ambiguous. Blocking."""
        path = params.get(self.parameter)
        if not isinstance(path, str) or path.startswith(HANDLE_PREFIX):
            return dict(params)
        other, new = self.unless
        must_exist = self.kind is not None and not (other and params.get(other, new) == new)
        try:
            name = self._name(path, must_exist=must_exist)
        except (ToolFailure, OSError):
            return dict(params)
        return {**params, self.parameter: name}

    def finds(self, params: Mapping[str, Any]) -> bool:
        """Whether the path that is meant exists and is of the right kind. Blocking."""
        path = self.read(params).get(self.parameter)
        if not isinstance(path, str) or path.startswith(HANDLE_PREFIX):
            return True
        try:
            return self._is_wanted(self.root.real(path, follow=self.follow))
        except (ToolFailure, OSError):
            return False

    def knows(self, word: str) -> float:
        """Return how surely a word names an existing path of the right kind, from -1 to 1. Blocking.

        1: the path exists; 0.5: a name in the working folder equals it without case and suffix; -1: the path exists
        and is of the other kind; 0: neither.
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
            names = matching_paths(self.root, path, self.kind or "any", careful=self.careful).names
            return names[0] if len(names) == 1 else path
        name = self.root.name(real)
        if name in (str(PurePosixPath(path)), "."):
            return path
        if self.parameter == DESTINATION:  # where a bare name, or a slash at the end, has a meaning of its own
            name = f"{name if '/' in name else f'./{name}'}{'/' * path.endswith('/')}"
        return name


@lru_cache(maxsize=4)
def _by_stem(folder: Path, changed_at: int) -> dict[str, list[Path]]:
    by_stem: dict[str, list[Path]] = {}
    for entry in folder.iterdir():
        by_stem.setdefault(entry.stem.casefold(), []).append(entry)
    return by_stem


def missing(root: Root, real: Path, kind: Kind) -> ToolFailure:
    """Return the failure for a path that does not exist, with the nearest names. Blocking."""
    name = root.name(real)
    meant = matching_paths(root, name, kind)
    if len(meant.names) > 1:
        return ToolFailure(f"{name} may be one of: {', '.join(meant.names)}. Say which")
    while not real.parent.is_dir():
        real = real.parent
    where = "the working folder" if real.parent == root.path else root.name(real.parent)
    hint = ", ".join(meant.names or meant.nearest)
    more = f"Near to it: {hint}" if hint else contents_line(root, real.parent)
    return ToolFailure(f"{root.name(real)} does not exist in {where}. {more}")


def contents_line(root: Root, folder: Path) -> str:
    """Return the names in a resolved folder, in one line. Blocking."""
    left_out = Counter[str]()
    names = [entry.name for entry in walk(root, folder, left_out, deep=False)]
    if not names:
        return "Nothing is shown in it." if left_out[WITHHELD] else "It is empty."
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return f"It holds: {', '.join(names[:_NAMES_SHOWN])}{more}"


class PathMatches(NamedTuple):
    """Existing paths that a name may stand for."""

    names: tuple[str, ...] = ()
    """Paths that match equally well."""
    nearest: tuple[str, ...] = ()
    """The most similar ones, where none matches."""


def matching_paths(root: Root, path: str, kind: Kind, *, careful: bool = False) -> PathMatches:
    """Return the paths that a missing path may stand for: by base name, without suffix, or misspelt. Blocking.

    Withheld files never match.

    Args:
        careful: whether to reject misspellings, and files in another folder than the named one.

    Raises:
        ToolFailure: the working folder cannot be read.
    """
    try:
        entries = [entry for entry in walk(root, root.path, Counter()) if _is(entry.is_file, entry.is_folder, kind)]
    except OSError as error:
        raise ToolFailure(f"cannot look into the working folder: {error.strerror or error}") from error
    names = [entry.path for entry in entries]
    wanted = path.strip().strip("/").removeprefix("./").casefold()
    bare = _bare(wanted)
    for fits in _readings(wanted, bare, in_place=careful and "/" in wanted):
        if matches := tuple(name for name in names if fits(name.casefold())):
            return PathMatches(matches)
    meant = _misspelt(wanted, names)
    return PathMatches(nearest=(*meant.names, *meant.nearest)) if careful else meant


def _is(is_file: bool, is_folder: bool, kind: Kind) -> bool:
    return (is_file and kind != "folder") or (is_folder and kind != "file")


def _readings(wanted: str, bare: str, *, in_place: bool) -> Iterable[Callable[[str], bool]]:
    base = wanted.rpartition("/")[2]
    yield lambda name: name == wanted
    yield lambda name: name.endswith(f"/{wanted}")
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


def _misspelt(wanted: str, names: list[str]) -> PathMatches:
    scored = sorted(((_likeness(wanted, name.casefold()), name) for name in names), key=lambda one: (-one[0], one[1]))
    best = scored[0][0] if scored else 0.0
    if best >= ALIKE:
        return PathMatches(tuple(name for score, name in scored if score == best and _numbered_alike(wanted, name)))
    return PathMatches(nearest=tuple(name for score, name in scored[:MOST_SHOWN] if score >= NEAR))


def _likeness(wanted: str, name: str) -> float:
    ending, base = Path(wanted).suffix, name.rpartition("/")[2]
    same_ending = not ending or base.endswith(ending)
    own, form = (
        _bare(wanted.removesuffix(ending) if same_ending else wanted),
        squeezed(_stem(base) if same_ending else base),
    )
    return max(_alike(one, form) for one in {own, *_words(wanted.split())})


def _alike(own: str, form: str) -> float:
    if min(len(own), len(form)) < SHORT:
        return 0.0
    turned = sorted(own) == sorted(form) and own[0] == form[0]  # letters in another order
    matcher = SequenceMatcher(None, own, form)
    if min(matcher.real_quick_ratio(), matcher.quick_ratio()) < NEAR:
        return 0.0
    return max(matcher.ratio(), ALIKE * turned)


def _numbered_alike(wanted: str, name: str) -> bool:
    own, other = (Counter(_MARKS.findall(one.casefold().rpartition("/")[2])) for one in (wanted, name))
    return own == other


def _bare(wanted: str) -> str:
    words = wanted.rpartition("/")[2].split()
    return squeezed(" ".join([word for word in words if word not in _FILLERS] or words))


def _words(parts: Iterable[str]) -> frozenset[str]:
    return frozenset(squeezed(part).removesuffix("s") for part in parts if part not in _FILLERS) - {""}


def _words_of_path(name: str) -> frozenset[str]:
    return _words([*re.split(r"[\W_]+", name), squeezed(_stem(name))])


def _stem(name: str) -> str:
    return Path(name).stem
