"""Score tools by learned trees, from features of tool and request that are comparable between catalogues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from packetgate.ranking.bm25 import CONCATENATED, COUNT_BITS, MAX_COUNT, TOOL_FIELDS, Lexical, ScoredRequest
from packetgate.reflex.meaning.encoder import Floats, Vectors
from packetgate.reflex.weights import load_arrays
from packetgate.tools.learned import DIGITS

BY_VECTOR = 32
"""Number of candidates by the vector of the request."""
BY_SENTENCE = 16
"""Number of further candidates by the vector of one sentence."""
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


class Space:
    """All tools of a catalogue as vectors of one encoder."""

    def __init__(self, names: Sequence[str], rows: Floats, vectors: Vectors, trees: "Trees") -> None:
        self._rows = np.ascontiguousarray(rows, np.float32)
        self._names = names
        self._places = {name: place for place, name in enumerate(names)}
        self._trees = trees
        self.vectors = vectors
        """The vectors that the space consists of."""

    def row(self, name: str) -> Floats:
        """Return a tool's vector."""
        row: Floats = self._rows[self._places[name]]
        return row

    def scores(self, request: ScoredRequest, lexical: Lexical) -> Mapping[str, float]:
        """Return the score of each candidate, from 0 to 1."""
        names, rows = self.candidates(request, lexical)
        if not names:
            return {}
        margins = self._trees.scores(rows).astype(np.float64).round(DIGITS)
        return dict(zip(names, (1 / (1 + np.exp(-margins))).tolist(), strict=True))

    def candidates(self, request: ScoredRequest, lexical: Lexical) -> tuple[list[str], Floats]:
        """Return the candidates and their features."""
        cosines = [self._cosines(text) for text in request.texts]
        whole, part = cosines[0], np.maximum.reduce(cosines)
        near = [*_largest(whole, BY_VECTOR), *(_largest(part, BY_SENTENCE) if len(cosines) > 1 else ())]
        floor = self.vectors.encoder.floor
        names = list(dict.fromkeys([*request.best, *(self._names[at] for at in near if part[at] >= floor)]))
        if not names:
            return names, np.zeros((0, len(COLUMNS)), np.float32)
        places = [self._places[name] for name in names]
        return names, features(names, request, lexical, whole[places], part[places])

    def _cosines(self, text: str) -> Floats:
        # unlike `@`, einsum starts no threads
        cosines: Floats = np.einsum("ij,j->i", self._rows, self.vectors.encoder.vectors([text])[0])
        return cosines.round(DIGITS)


def _largest(scores: Floats, count: int) -> NDArray[np.intp]:
    """Return the sorted indexes of the largest scores; among equal scores, the first ones."""
    if len(scores) <= count:
        return np.arange(len(scores))
    least = np.partition(scores, -count)[-count]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.sort(np.concatenate([above, equal[: count - len(above)]]))


@cache
def load_ranking_trees(path: Path) -> "dict[str, Trees]":
    """Return the trees of each space. Raise `WeightsError` if the file is missing or broken."""
    arrays = load_arrays(path)
    return {kind: Trees.from_arrays(arrays, kind) for kind in ("fine", "coarse")}


def features(names: Sequence[str], request: ScoredRequest, lexical: Lexical, whole: Floats, part: Floats) -> Floats:
    """Return a row for each candidate, with the columns of `COLUMNS`.

    Args:
        whole: cosine of each candidate with the whole request.
        part: with the nearest sentence of the request.
    """
    stems, entries = lexical.known_stems(request.words), [lexical.entries[name] for name in names]
    word_count = len(request.words)
    rarity = np.array([lexical.rarity(stem) for stem in stems] or [1.0])
    packed = np.array(
        [[one.held[stem].counts if stem in one.held else 0 for stem in stems] or [0] for one in entries], np.int64
    )
    counts = {field: packed >> COUNT_BITS * place & MAX_COUNT for place, field in enumerate(TOOL_FIELDS)}
    share = rarity / rarity.sum()
    total = sum(counts[field] for field in CONCATENATED)
    lengths = np.array([one.length for one in entries]) / max(1.0, lexical.mean_length)
    saturated = total * (SATURATION + 1) / (total + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * lengths[:, None]))
    bm25 = (saturated @ rarity).round(DIGITS)
    fielded = np.array([request.scores.get(name, 0.0) for name in names])
    held = packed > 0
    name_share = (counts["name"] > 0).sum(1) / np.array([max(1, len(one.name_stems)) for one in entries])
    covered = held @ share
    columns = [
        fielded, _relative_to_best(fielded), _log_ranks(fielded),
        bm25, _relative_to_best(bm25), _log_ranks(bm25),
        *((counts[field] > 0) @ share for field in TOOL_FIELDS),
        covered, held.sum(1) / max(1, word_count), name_share,
        whole, whole - whole.max(), _log_ranks(whole), (whole - whole.mean()) / (whole.std() + 1e-6),
        part, part - part.max(), _log_ranks(part),
        *_siblings([one.server for one in entries], whole, _relative_to_best(bm25)),
        np.full(len(names), word_count), np.full(len(names), whole.max()), np.full(len(names), covered.max()),
    ]  # fmt: skip
    return np.stack(columns, axis=1).round(DIGITS).astype(np.float32)


def _relative_to_best(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    return scores / max(float(scores.max()), 1e-6)


def _log_ranks(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the logarithm of each score's rank; equal scores have the same rank."""
    return np.log1p(np.searchsorted(np.sort(-scores), -scores))


def _siblings(servers: Sequence[str], cosines: Floats, bm25: NDArray[np.floating]) -> list[NDArray[np.floating]]:
    """Return, for each candidate, the best cosine and score of its server's other candidates, and their number."""
    _, group = np.unique(np.array(servers), return_inverse=True)
    same = group[:, None] == group[None, :]
    np.fill_diagonal(same, val=False)
    same &= np.array([bool(server) for server in servers])[:, None]
    return [
        np.where(same, cosines[None, :], -1.0).max(1),
        np.where(same, bm25[None, :], -1.0).max(1),
        np.log1p(same.sum(1)),
    ]


@dataclass(frozen=True)
class Trees:
    """Trees as arrays with one row per tree and one column per node or leaf, padded with empty columns.

    A row of features goes left at a node if the feature is at most the threshold; otherwise the leaves to the left of
    that node are excluded. The first leaf that no node excludes is the result, so that all nodes are tested at once.
    """

    feature: NDArray[np.int16]
    threshold: Floats
    left_of: NDArray[np.int32]
    """Leaves to the left of each node, as bits; the lowest bit is the leftmost leaf."""
    values: Floats
    """Values of the leaves, from left to right."""

    def scores(self, rows: Floats) -> Floats:
        """Return the sum over all trees for each row."""
        goes_right = rows.T[self.feature] > self.threshold[..., None]
        excluded = np.bitwise_or.reduce(np.where(goes_right, self.left_of[..., None], 0), axis=1)
        first = np.frexp((~excluded & (excluded + 1)).astype(np.float64))[1] - 1
        leaves = self.values[np.arange(len(self.values))[:, None], first]
        total: Floats = leaves.sum(0, dtype=np.float64).astype(np.float32)
        return total

    def arrays(self, prefix: str) -> dict[str, Any]:
        """Return the arrays for `from_arrays`."""
        return {f"{prefix}.{one.name}": getattr(self, one.name) for one in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Any, prefix: str) -> "Trees":
        """Return trees from `arrays`."""
        return cls(**{one.name: arrays[f"{prefix}.{one.name}"] for one in fields(cls)})
