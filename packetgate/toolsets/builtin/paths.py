"""Resolve the paths in a call before it is checked, so that the approved path is the one that is opened."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from packetgate.tools.text.result_store import HANDLE_PREFIX
from packetgate.tools.text.values import alphanumerics_of
from packetgate.toolsets.builtin.files import Root, ToolFailure
from packetgate.toolsets.builtin.tree import WITHHELD, walk

PathKind = Literal["file", "folder", "any"]

DESTINATION = "destination"
_NAMES_SHOWN = 20
_MAX_NEAREST = 8
_MISSPELT = 0.85
"""Least similarity at which a path counts as a misspelling of an existing path."""
_SIMILAR = 0.6
"""Least similarity at which a name is suggested."""
_MIN_LETTERS = 4
"""Shorter names are never compared by similarity."""
_NUMBERS = re.compile(r"\d+|(?<![^\W_])[^\W\d_](?![^\W_])")
"""Numbers and single letters: names that differ in them are different names."""
_SEPARATOR = re.compile(r"[\W_]+")
_FILLERS = frozenset(
    "a an the my our your this that to of for in about on from with file folder directory document called named".split()
)


@dataclass(frozen=True)
class PathParameter:
    """A parameter that takes a path, and the rules by which the path is resolved."""

    root: Root
    parameter: str = "path"
    kind: PathKind | None = None
    """Kind of entry that must exist at the path; None: the path need not exist."""
    follow: bool = True
    """Whether to follow a link that the path names."""
    strict: bool = False
    """Whether to reject misspellings, because the file is moved, replaced or deleted."""
    may_be_new_if: tuple[str, str] = ("", "")
    """(parameter, default value): the path need not exist if this parameter is missing or has this value."""

    def resolve(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with the resolved path; unchanged if the path is ambiguous. Blocking."""
        path = params.get(self.parameter)
        if not isinstance(path, str) or path.startswith(HANDLE_PREFIX):
            return dict(params)
        condition, default = self.may_be_new_if
        may_be_new = condition and params.get(condition, default) == default
        try:
            name = self._resolved_name(path, must_exist=self.kind is not None and not may_be_new)
        except (ToolFailure, OSError):
            return dict(params)
        return {**params, self.parameter: name}

    def path_exists(self, params: Mapping[str, Any]) -> bool:
        """Whether the resolved path need not exist, or exists and is of the right kind. Blocking."""
        path = self.resolve(params).get(self.parameter)
        if self.kind is None or not isinstance(path, str) or path.startswith(HANDLE_PREFIX):
            return True
        try:
            return self._is_right_kind(self.root.real_path(path, follow=self.follow))
        except (ToolFailure, OSError):
            return False

    def certainty(self, word: str) -> float:
        """Return how certainly a word names an existing path of the right kind, from -1 to 1. Blocking.

        1: the path exists; 0.5: a name in the working folder equals it without case and suffix; -1: the path exists
        and is of the other kind; 0: neither.
        """
        try:
            real_path = self.root.real_path(word, follow=self.follow)
            if real_path.exists():
                return 1.0 if self._is_right_kind(real_path) else -1.0
            folder = self.root.path
            same_stem = _paths_by_stem(folder, folder.stat().st_mtime_ns).get(word.casefold(), ())
        except (ToolFailure, OSError):
            return 0.0
        return 0.5 * any(map(self._is_right_kind, same_stem))

    def _is_right_kind(self, real_path: Path) -> bool:
        checks = {"file": real_path.is_file, "folder": real_path.is_dir}
        return checks.get(self.kind or "any", real_path.exists)()

    def _resolved_name(self, path: str, *, must_exist: bool) -> str:
        real_path = self.root.real_path(path, follow=self.follow)
        if must_exist and not real_path.exists() and not real_path.is_symlink():
            names = matching_paths(self.root, path, self.kind or "any", strict=self.strict).names
            return names[0] if len(names) == 1 else path
        name = self.root.name(real_path)
        if name in (str(PurePosixPath(path)), "."):
            return path
        if self.parameter == DESTINATION:  # here, a bare name and a trailing slash have a special meaning
            name = f"{name if '/' in name else f'./{name}'}{'/' * path.endswith('/')}"
        return name


@lru_cache(maxsize=4)
def _paths_by_stem(folder: Path, changed_at: int) -> dict[str, list[Path]]:
    by_stem: dict[str, list[Path]] = {}
    for entry in folder.iterdir():
        by_stem.setdefault(entry.stem.casefold(), []).append(entry)
    return by_stem


def existing_path(root: Root, path: str, kind: PathKind = "any", *, follow: bool = True) -> Path:
    """Return the resolved path of a file or folder that exists. Blocking.

    Raise `ToolFailure` if it does not exist, is of the other kind, or is outside the root.
    """
    real_path = root.resolve(path, follow=follow)
    try:
        real_path.lstat()
    except FileNotFoundError as error:
        raise path_not_found(root, real_path, kind) from error
    if kind == "file" and real_path.is_dir():
        raise ToolFailure(f"{root.name(real_path)} is a folder, not a file. {folder_contents(root, real_path)}")
    if kind == "folder" and not real_path.is_dir():
        raise ToolFailure(f"{root.name(real_path)} is a file, not a folder: leave `path` out, or name a folder")
    return real_path


def path_not_found(root: Root, real_path: Path, kind: PathKind) -> ToolFailure:
    """Return the failure for a path that does not exist, with the most similar names. Blocking."""
    name = root.name(real_path)
    matches = matching_paths(root, name, kind)
    if len(matches.names) > 1:
        return ToolFailure(f"{name} may be one of: {', '.join(matches.names)}. Name one of these paths")
    while not real_path.parent.is_dir():
        real_path = real_path.parent
    nearest = ", ".join(matches.names or matches.nearest)
    hint = f"Nearest: {nearest}" if nearest else folder_contents(root, real_path.parent)
    return ToolFailure(f"{root.name(real_path)} does not exist in {root.label(real_path.parent)}. {hint}")


def folder_contents(root: Root, folder: Path) -> str:
    """Return the names in a resolved folder, in one line. Blocking."""
    skipped = Counter[str]()
    names = [entry.path.rpartition("/")[2] for entry in walk(root, folder, skipped, deep=False)]
    if not names:
        return "It has only hidden files." if skipped[WITHHELD] else "It is empty."
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return f"It contains: {', '.join(names[:_NAMES_SHOWN])}{more}"


class PathMatches(NamedTuple):
    """The existing paths that a name may refer to."""

    names: tuple[str, ...] = ()
    """Paths that match equally well."""
    nearest: tuple[str, ...] = ()
    """The most similar paths, if no path matches."""


class _Known:
    """An existing path, in the forms in which it is compared with a name."""

    def __init__(self, path: str) -> None:
        self.path, self.name = path, path.casefold()
        self.base = self.name.rpartition("/")[2]
        stem = PurePosixPath(self.name).stem
        self.plain, self.stem_words = alphanumerics_of(stem), _words(_SEPARATOR.split(stem))
        self.base_words = _words([*_SEPARATOR.split(self.base), self.plain])
        self.words = _words([*_SEPARATOR.split(self.name), self.plain])


def matching_paths(root: Root, path: str, kind: PathKind, *, strict: bool = False) -> PathMatches:
    """Return the paths that a missing path may refer to: by base name, without suffix, or misspelt. Blocking.

    Withheld files never match.

    Args:
        strict: whether to reject misspellings, and files in another folder than the named one.

    Raises:
        OSError: the working folder cannot be read.
    """
    entries = walk(root, root.path, Counter())
    paths = [
        _Known(one.path) for one in entries if (one.is_file and kind != "folder") or (one.is_folder and kind != "file")
    ]
    whole = path.strip().strip("/").removeprefix("./").casefold()
    base = whole.rpartition("/")[2]
    plain, words = _plain(base), _words(base.split())
    tests: list[Callable[[_Known], bool]] = [
        lambda one: f"/{one.name}".endswith(f"/{whole}"),
        lambda one: one.base == base,
        lambda one: plain in {alphanumerics_of(one.name), alphanumerics_of(one.base), one.plain},
        lambda one: one.plain in {f"{plain}s", plain.removesuffix("s")},
        lambda one: words <= one.words and bool(words & one.base_words),
        lambda one: len(words) > 1 and len(one.plain) >= _MIN_LETTERS and one.stem_words <= words,
    ]
    for test in tests[: 1 if strict and "/" in whole else None if plain else 2]:
        if matches := tuple(one.path for one in paths if test(one)):
            return PathMatches(matches)
    similar = _similar(base, paths)
    return PathMatches(nearest=(*similar.names, *similar.nearest)) if strict else similar


def _similar(base: str, paths: Iterable[_Known]) -> PathMatches:
    suffix = PurePosixPath(base).suffix
    stem = _plain(base.removesuffix(suffix))
    by_stem: dict[str, list[_Known]] = {}
    for one in paths:
        by_stem.setdefault(one.plain, []).append(one)
    close = get_close_matches(stem, [known for known in by_stem if len(known) >= _MIN_LETTERS], _MAX_NEAREST, _SIMILAR)
    if close and len(stem) >= _MIN_LETTERS:
        is_swapped = stem[0] == close[0][0] and sorted(stem) == sorted(close[0])
        if is_swapped or SequenceMatcher(None, close[0], stem).ratio() >= _MISSPELT:
            numbers, same = sorted(_NUMBERS.findall(base)), [*by_stem[close[0]]]
            same = [one for one in same if one.name.endswith(suffix) and sorted(_NUMBERS.findall(one.base)) == numbers]
            if same:
                return PathMatches(tuple(one.path for one in same))
    return PathMatches(nearest=tuple(one.path for known in close for one in by_stem[known])[:_MAX_NEAREST])


def _plain(name: str) -> str:
    words = name.split()
    return alphanumerics_of(" ".join([word for word in words if word not in _FILLERS] or words))


def _words(parts: Iterable[str]) -> frozenset[str]:
    return frozenset(alphanumerics_of(part).removesuffix("s") for part in parts if part not in _FILLERS) - {""}
