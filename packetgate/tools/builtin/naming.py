"""Which file or folder a person means by a name that is not quite its path."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal, NamedTuple

from packetgate.tools.builtin.failures import ToolFailure
from packetgate.tools.builtin.root import Root
from packetgate.tools.builtin.tree import walk
from packetgate.tools.provenance.values import squeezed

Kind = Literal["file", "folder", "any"]

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
    """Yield what a name may fit by, the closest first; `in_place`, only in the folder that is said."""
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
    """Return how alike two names are, by their letters; the ending counts only where it is not the same.

    One of several words may be the whole name: `the shoping list` for `shopping.txt`.
    """
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
    """Whether two names have the same numbers and single letters: `plan 1` is not `plan 2` misspelt."""
    own, other = (Counter(_MARKS.findall(one.casefold().rpartition("/")[2])) for one in (said, name))
    return own == other


def _bare(said: str) -> str:
    """Return the letters and digits of a name, without the words around it: `the meeting notes` for `meetingnotes`."""
    words = said.rpartition("/")[2].split()
    return squeezed(" ".join([word for word in words if word not in _FILLERS] or words))


def _words(parts: Iterable[str]) -> frozenset[str]:
    """Return the words among these that say something, without the ending of a plural."""
    return frozenset(squeezed(part).removesuffix("s") for part in parts if part not in _FILLERS) - {""}


def _words_of_path(name: str) -> frozenset[str]:
    return _words([*re.split(r"[\W_]+", name), squeezed(_stem(name))])


def _stem(name: str) -> str:
    return Path(name).stem
