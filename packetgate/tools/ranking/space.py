"""Score tools by their vectors and learned trees."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packetgate.tools.learned import DIGITS, load_arrays
from packetgate.tools.ranking.bm25 import Lexical, ScoredRequest
from packetgate.tools.ranking.encoder import (
    WEIGHTS,
    SentenceEncoder,
    StaticEncoder,
    sentence_encoder,
    static_encoder,
)
from packetgate.tools.ranking.features import COLUMNS, Cosines, features
from packetgate.tools.ranking.trees import Floats, Trees
from packetgate.tools.ranking.vectors import Vectors

STATIC_AT_ONCE = 3_000
"""Most static vectors that are computed while a request waits."""
BY_VECTOR = 32
"""Number of candidates by the vector of the request."""
BY_SENTENCE = 16
"""Number of further candidates by the vector of one sentence."""


class Spaces:
    """The vector spaces for tools: the encoder's, and the static space until the encoder's vectors are computed."""

    def __init__(self, path: Path | None = None, weights: Path = WEIGHTS) -> None:
        """Store the encoder's vectors in the file `path`, or only in memory. Weights are loaded at first use."""
        self.mix = weights / "mix.npz"
        """File of the trees."""
        is_shipped = weights == WEIGHTS
        self.fine = Vectors(sentence_encoder() if is_shipped else SentenceEncoder(weights), path)
        static = static_encoder() if is_shipped else StaticEncoder(weights)
        self.coarse = Vectors(static, at_once=STATIC_AT_ONCE)

    def space(self, texts: Mapping[str, str], before: "Space | None") -> "Space | None":
        """Return the best space that has the vectors of all tools now, or None.

        Args:
            texts: the texts of the tools, by name.
            before: the last space of the same tools.
        """
        rows = self.fine.of(list(texts.values()))
        if rows is not None:
            return Space("fine", texts, rows, self.fine, load_ranking_trees(self.mix)["fine"])
        if before is not None:
            return before
        rows = self.coarse.of(list(texts.values()))
        return (
            None if rows is None else Space("coarse", texts, rows, self.coarse, load_ranking_trees(self.mix)["coarse"])
        )


class Space:
    """All tools of a catalogue as vectors of one encoder."""

    def __init__(self, kind: str, texts: Mapping[str, str], rows: Floats, vectors: Vectors, trees: Trees) -> None:
        self.is_final = kind == "fine"
        self._rows = np.ascontiguousarray(rows, np.float32)
        self._names = list(texts)
        self._places = {name: place for place, name in enumerate(texts)}
        self._trees = trees
        self._vectors = vectors

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
        floor = self._vectors.encoder.floor
        names = list(dict.fromkeys([*request.best, *(self._names[at] for at in near if part[at] >= floor)]))
        if not names:
            return names, np.zeros((0, len(COLUMNS)), np.float32)
        places = [self._places[name] for name in names]
        return names, features(names, request, lexical, Cosines(whole[places], part[places]))

    def _cosines(self, text: str) -> Floats:
        cosines: Floats = np.einsum("ij,j->i", self._rows, self._vectors.of_request(text))  # einsum wakes no threads
        return cosines.round(DIGITS)


def _largest(scores: Floats, count: int) -> NDArray[np.intp]:
    """Return the sorted indexes of the largest scores; among equal scores, the first ones."""
    if len(scores) <= count:
        return np.arange(len(scores))
    least = np.partition(scores, -count)[-count]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.sort(np.concatenate([above, equal[: count - len(above)]]))


@cache
def load_ranking_trees(path: Path) -> dict[str, Trees]:
    """Return the trees of each space.

    Raises:
        WeightsError: the file is missing or broken.
    """
    arrays = load_arrays(path)
    return {kind: Trees.from_arrays(arrays, kind) for kind in ("fine", "coarse")}
