"""Features of a tool for a request, comparable between catalogues."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packetgate.tools.learned import DIGITS
from packetgate.tools.ranking.bm25 import CONCATENATED, COUNT_BITS, MAX_COUNT, TOOL_FIELDS, Lexical, ScoredRequest
from packetgate.tools.ranking.trees import Floats

COLUMNS = (
    "bm25f", "bm25f_of_best", "bm25f_place",
    "bm25", "bm25_of_best", "bm25_place",
    *(f"covered_by_{field}" for field in TOOL_FIELDS),
    "covered", "covered_words", "name_said",
    "cosine", "cosine_below_best", "cosine_place", "cosine_deviation",
    "part_cosine", "part_cosine_below_best", "part_cosine_place",
    "sibling_cosine", "sibling_bm25", "siblings",
    "request_words", "best_cosine", "best_covered",
)  # fmt: skip
"""Columns of a row, in order."""

SATURATION, LENGTH_SHARE = 1.5, 0.75
"""BM25's k1 and b, over a tool's whole text."""


class Cosines(NamedTuple):
    """Cosines of candidates, in the order of their names."""

    whole: Floats
    """Cosine with the whole request."""
    part: Floats
    """Cosine with the nearest sentence of the request."""


def features(names: Sequence[str], request: ScoredRequest, lexical: Lexical, near: Cosines) -> Floats:
    """Return a row for each candidate, with the columns of `COLUMNS`."""
    stems, entries = lexical.known(request.words), [lexical.entries[name] for name in names]
    whole, part, word_count = near.whole, near.part, len(request.words)
    rarity = np.array([lexical.rarity(stem) for stem in stems] or [1.0])
    packed = np.array(
        [[one.held[stem].counts if stem in one.held else 0 for stem in stems] or [0] for one in entries], np.int64
    )
    counts = {field: packed >> COUNT_BITS * place & MAX_COUNT for place, field in enumerate(TOOL_FIELDS)}
    share = rarity / rarity.sum()
    total = sum(counts[field] for field in CONCATENATED)
    lengths = np.array([one.length for one in entries]) / max(1.0, lexical.usual_length)
    saturated = total * (SATURATION + 1) / (total + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths[:, None]))
    bm25 = (saturated @ rarity).round(DIGITS)
    fielded = np.array([request.scores.get(name, 0.0) for name in names])
    held = packed > 0
    name_share = (counts["name"] > 0).sum(1) / np.array([max(1, len(one.name_stems)) for one in entries])
    covered = held @ share
    columns = [
        fielded, _of_best(fielded), _places(fielded),
        bm25, _of_best(bm25), _places(bm25),
        *((counts[field] > 0) @ share for field in TOOL_FIELDS),
        covered, held.sum(1) / max(1, word_count), name_share,
        whole, whole - whole.max(), _places(whole), (whole - whole.mean()) / (whole.std() + 1e-6),
        part, part - part.max(), _places(part),
        *_siblings([one.server for one in entries], whole, _of_best(bm25)),
        np.full(len(names), word_count), np.full(len(names), whole.max()), np.full(len(names), covered.max()),
    ]  # fmt: skip
    return np.stack(columns, axis=1).round(DIGITS).astype(np.float32)


def _of_best(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    return scores / max(float(scores.max()), 1e-6)


def _places(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the logarithm of each score's rank; equal scores have the same rank."""
    return np.log1p(np.searchsorted(np.sort(-scores), -scores))


def _siblings(servers: Sequence[str], cosines: Floats, bm25: NDArray[np.floating]) -> list[NDArray[np.floating]]:
    """Return the best cosine and score of the server's other candidates, and their number."""
    _, group = np.unique(np.array(servers), return_inverse=True)
    same = group[:, None] == group[None, :]
    np.fill_diagonal(same, val=False)
    same &= np.array([bool(server) for server in servers])[:, None]
    return [
        np.where(same, cosines[None, :], -1.0).max(1),
        np.where(same, bm25[None, :], -1.0).max(1),
        np.log1p(same.sum(1)),
    ]
