"""What is known of a tool before a request, in numbers that mean the same in every catalogue."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packetgate.tools.learned import DIGITS
from packetgate.tools.ranking.asked import Asked
from packetgate.tools.ranking.bm25 import CONCATENATED, COUNT_BITS, FIELDS, MOST_COUNTED, Lexical

Floats = NDArray[np.float32]

NAMES = (
    "bm25f", "bm25f_of_best", "bm25f_place",
    "bm25", "bm25_of_best", "bm25_place",
    *(f"covered_by_{field}" for field in FIELDS),
    "covered", "covered_words", "name_said",
    "cosine", "cosine_below_best", "cosine_place", "cosine_deviation",
    "part_cosine", "part_cosine_below_best", "part_cosine_place",
    "sibling_cosine", "sibling_bm25", "siblings",
    "request_words", "best_cosine", "best_covered",
)  # fmt: skip
"""In their order in a row."""

SATURATION, LENGTH_SHARE = 1.5, 0.75
"""BM25's k1 and b, over all that a tool says as one text."""


class Cosines(NamedTuple):
    """How near candidates are, in the order of their names."""

    whole: Floats
    """To the request."""
    part: Floats
    """To the part of it that is nearest."""


def features(names: Sequence[str], asked: Asked, lexical: Lexical, near: Cosines) -> Floats:
    """Return a row for each candidate of `names`, with the columns of `NAMES`."""
    stems = lexical.known(asked.words)
    whole, part, many_words = near.whole, near.part, len(asked.words)
    rarity = np.array([lexical.rarity(stem) for stem in stems] or [1.0])
    packed = np.array([lexical.counts(name, stems) or [0] for name in names], np.int64)
    counts = {field: packed >> COUNT_BITS * place & MOST_COUNTED for place, field in enumerate(FIELDS)}
    share = rarity / rarity.sum()
    often = sum(counts[field] for field in CONCATENATED)
    lengths = np.array([lexical.length(name) for name in names]) / max(1.0, lexical.usual_length)
    met = often * (SATURATION + 1) / (often + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths[:, None]))
    bm25 = (met @ rarity).round(DIGITS)
    fielded = np.array([asked.scores.get(name, 0.0) for name in names])
    held = packed > 0
    said = (counts["name"] > 0).sum(1) / np.array([max(1, lexical.name_size(name)) for name in names])
    covered = held @ share
    columns = [
        fielded, _of_best(fielded), _places(fielded),
        bm25, _of_best(bm25), _places(bm25),
        *((counts[field] > 0) @ share for field in FIELDS),
        covered, held.sum(1) / max(1, many_words), said,
        whole, whole - whole.max(), _places(whole), (whole - whole.mean()) / (whole.std() + 1e-6),
        part, part - part.max(), _places(part),
        *_of_siblings([lexical.server(name) for name in names], whole, _of_best(bm25)),
        np.full(len(names), many_words), np.full(len(names), whole.max()), np.full(len(names), covered.max()),
    ]  # fmt: skip
    return np.stack(columns, axis=1).round(DIGITS).astype(np.float32)


def _of_best(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    return scores / max(float(scores.max()), 1e-6)


def _places(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the logarithm of each score's place, equal scores in the same."""
    ordered = np.sort(-scores)
    return np.log1p(np.searchsorted(ordered, -scores))


def _of_siblings(servers: Sequence[str], cosines: Floats, bm25: NDArray[np.floating]) -> list[NDArray[np.floating]]:
    """Return the best cosine and score of the server's other candidates, and how many they are."""
    _, group = np.unique(np.array(servers), return_inverse=True)
    same = group[:, None] == group[None, :]
    np.fill_diagonal(same, val=False)
    named = np.array([bool(server) for server in servers])
    same &= named[:, None]
    return [
        np.where(same, cosines[None, :], -1.0).max(1),
        np.where(same, bm25[None, :], -1.0).max(1),
        np.log1p(same.sum(1)),
    ]
