"""Resolve the paths in a call before it is checked, so that the approved path is the one that is opened."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from packetgate.tools.builtin.files import Root, ToolFailure
from packetgate.tools.builtin.tree import WITHHELD, walk
from packetgate.tools.provenance.values import squeeze_text
from packetgate.tools.text.result_store import HANDLE_PREFIX

PathKind = Literal["file", "folder", "any"]

DESTINATION = "destination"
_NAMES_SHOWN = 20
_MAX_NEAREST = 8
_MISSPELT = 0.85
"""Least similarity at which a name counts as a misspelling of another name."""
_NEAR = 0.6
_MIN_LETTERS = 4
"""Shorter names are never compared by similarity."""
_NUMBERS = re.compile(r"\d+|(?<![^\W_])[^\W\d_](?![^\W_])")
"""Numbers and single letters: names that differ in them are different names."""
_SEPARATOR = re.compile(r"[\W_]+")
_FILLERS = frozenset(
    "a an the my our your this that to of for in about on from with file folder directory document called named".split()
)


@dataclass(frozen=True)
class PathReader:
    """Resolves the path in one parameter of a tool."""

    root: Root
    parameter: str = "path"
    kind: PathKind | None = None
    """Kind of entry that must exist at the path; None: the path need not exist."""
    follow: bool = True
    """Whether to follow a link that the path names."""
    careful: bool = False
    """Whether to reject misspellings, because the file is moved, replaced or deleted."""
    unless: tuple[str, str] = ("", "")
    """(parameter, value): if the parameter has this value, its default, the path need not exist."""

    def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with the resolved path; unchanged if the path is ambiguous. Blocking."""
        path = params.get(self.parameter)
        if not isinstance(path, str) or path.startswith(HANDLE_PREFIX):
            return dict(params)
        other, new = self.unless
        must_exist = self.kind is not None and not (other and params.get(other, new) == new)
        try:
            return {**params, self.parameter: self._name(path, must_exist=must_exist)}
        except (ToolFailure, OSError):
            return dict(params)

    def path_exists(self, params: Mapping[str, Any]) -> bool:
        """Whether the resolved path exists and is of the right kind. Blocking."""
        path = self.read(params).get(self.parameter)
        if not isinstance(path, str) or path.startswith(HANDLE_PREFIX):
            return True
        try:
            return self._is_right_kind(self.root.real(path, follow=self.follow))
        except (ToolFailure, OSError):
            return False

    def certainty(self, word: str) -> float:
        """Return how surely a word names an existing path of the right kind, from -1 to 1. Blocking.

        1: the path exists; 0.5: a name in the working folder equals it without case and suffix; -1: the path exists
        and is of the other kind; 0: neither.
        """
        try:
            real = self.root.real(word, follow=self.follow)
            if real.exists():
                return 1.0 if self._is_right_kind(real) else -1.0
            folder = self.root.path
            alike = _by_stem(folder, folder.stat().st_mtime_ns).get(word.casefold(), ())
        except (ToolFailure, OSError):
            return 0.0
        return 0.5 * any(map(self._is_right_kind, alike))

    def _is_right_kind(self, real: Path) -> bool:
        return real.is_file() if self.kind == "file" else real.is_dir() if self.kind == "folder" else real.exists()

    def _name(self, path: str, *, must_exist: bool) -> str:
        real = self.root.real(path, follow=self.follow)
        if must_exist and not real.exists() and not real.is_symlink():
            names = matching_paths(self.root, path, self.kind or "any", careful=self.careful).names
            return names[0] if len(names) == 1 else path
        name = self.root.name(real)
        if name in (str(PurePosixPath(path)), "."):
            return path
        if self.parameter == DESTINATION:  # here, a bare name and a trailing slash have a special meaning
            name = f"{name if '/' in name else f'./{name}'}{'/' * path.endswith('/')}"
        return name


@lru_cache(maxsize=4)
def _by_stem(folder: Path, changed_at: int) -> dict[str, list[Path]]:
    by_stem: dict[str, list[Path]] = {}
    for entry in folder.iterdir():
        by_stem.setdefault(entry.stem.casefold(), []).append(entry)
    return by_stem


def existing(root: Root, path: str, kind: PathKind = "any", *, follow: bool = True) -> Path:
    """Return the resolved path of a file or folder that exists. Blocking.

    Raise `ToolFailure` if it does not exist, is of the other kind, or is outside the root.
    """
    real = root.resolve(path, follow=follow)
    try:
        real.lstat()
    except FileNotFoundError as error:
        raise missing(root, real, kind) from error
    if kind == "file" and real.is_dir():
        raise ToolFailure(f"{root.name(real)} is a folder, not a file. {contents_line(root, real)}")
    if kind == "folder" and not real.is_dir():
        raise ToolFailure(f"{root.name(real)} is a file, not a folder: leave `path` out, or name a folder")
    return real


def missing(root: Root, real: Path, kind: PathKind) -> ToolFailure:
    """Return the failure for a path that does not exist, with the nearest names. Blocking."""
    name = root.name(real)
    matches = matching_paths(root, name, kind)
    if len(matches.names) > 1:
        return ToolFailure(f"{name} may be one of: {', '.join(matches.names)}. Say which")
    while not real.parent.is_dir():
        real = real.parent
    nearest = ", ".join(matches.names or matches.nearest)
    hint = f"Nearest: {nearest}" if nearest else contents_line(root, real.parent)
    return ToolFailure(f"{root.name(real)} does not exist in {root.label(real.parent)}. {hint}")


def contents_line(root: Root, folder: Path) -> str:
    """Return the names in a resolved folder, in one line. Blocking."""
    left_out = Counter[str]()
    names = [entry.name for entry in walk(root, folder, left_out, deep=False)]
    if not names:
        return "It has only hidden files." if left_out[WITHHELD] else "It is empty."
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return f"It holds: {', '.join(names[:_NAMES_SHOWN])}{more}"


class PathMatches(NamedTuple):
    """Existing paths that a name may mean."""

    names: tuple[str, ...] = ()
    """Paths that match equally well."""
    nearest: tuple[str, ...] = ()
    """The most similar paths, if no path matches."""


class _Name:
    """A path in the forms by which it is compared, all without case."""

    def __init__(self, path: str) -> None:
        self.path, self.whole = path, path.casefold()
        self.base = self.whole.rpartition("/")[2]
        self.stem = PurePosixPath(self.whole).stem
        self.plain_stem = squeeze_text(self.stem)
        self.words = _words([*_SEPARATOR.split(self.whole), self.plain_stem])
        self.base_words = _words([*_SEPARATOR.split(self.base), self.plain_stem])
        self.stem_words = _words(_SEPARATOR.split(self.stem))
        self.numbers = sorted(_NUMBERS.findall(self.base))


def matching_paths(root: Root, path: str, kind: PathKind, *, careful: bool = False) -> PathMatches:
    """Return the paths that a missing path may mean: by base name, without suffix, or misspelt. Blocking.

    Withheld files never match.

    Args:
        careful: whether to reject misspellings, and files in another folder than the named one.

    Raises:
        OSError: the working folder cannot be read.
    """
    names = [
        _Name(entry.path)
        for entry in walk(root, root.path, Counter())
        if (entry.is_file and kind != "folder") or (entry.is_folder and kind != "file")
    ]
    wanted = _Name(path.strip().strip("/").removeprefix("./"))
    bare, words = _bare(wanted.base), _words(wanted.base.split())
    tests: list[Callable[[_Name], bool]] = [
        lambda name: name.whole == wanted.whole or name.whole.endswith(f"/{wanted.whole}"),
        lambda name: name.base == wanted.base,
        lambda name: bool(bare) and bare in {squeeze_text(name.whole), squeeze_text(name.base), name.plain_stem},
        lambda name: bool(bare) and name.plain_stem in {f"{bare}s", bare.removesuffix("s")},
        lambda name: bool(words) and words <= name.words and bool(words & name.base_words),
        lambda name: len(words) > 1 and len(name.stem) >= _MIN_LETTERS and name.stem_words <= words,
    ]
    for test in tests[: 1 if careful and "/" in wanted.whole else None]:
        if matches := tuple(name.path for name in names if test(name)):
            return PathMatches(matches)
    similar = _similar(wanted, names)
    return PathMatches(nearest=(*similar.names, *similar.nearest)) if careful else similar


def _similar(wanted: _Name, names: list[_Name]) -> PathMatches:
    suffix = PurePosixPath(wanted.whole).suffix
    own = _bare(wanted.base.removesuffix(suffix))
    by_stem: dict[str, list[_Name]] = {}
    for name in names:
        by_stem.setdefault(name.plain_stem, []).append(name)
    close = get_close_matches(own, [stem for stem in by_stem if len(stem) >= _MIN_LETTERS], _MAX_NEAREST, _NEAR)
    if close and len(own) >= _MIN_LETTERS:
        is_swapped = own[0] == close[0][0] and sorted(own) == sorted(close[0])
        if is_swapped or SequenceMatcher(None, close[0], own).ratio() >= _MISSPELT:
            same = [
                name for name in by_stem[close[0]] if name.whole.endswith(suffix) and name.numbers == wanted.numbers
            ]
            if same:
                return PathMatches(tuple(name.path for name in same))
    return PathMatches(nearest=tuple(name.path for stem in close for name in by_stem[stem])[:_MAX_NEAREST])


def _bare(base: str) -> str:
    words = base.split()
    return squeeze_text(" ".join([word for word in words if word not in _FILLERS] or words))


def _words(parts: Iterable[str]) -> frozenset[str]:
    return frozenset(squeeze_text(part).removesuffix("s") for part in parts if part not in _FILLERS) - {""}
