"""Tools and requests as vectors, and what trees make of them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packetgate.tools.learned import DIGITS, arrays_of
from packetgate.tools.ranking.asked import Asked
from packetgate.tools.ranking.bm25 import Lexical
from packetgate.tools.ranking.encoder import WEIGHTS, Encoder, Floats, sentence_encoder, static_encoder
from packetgate.tools.ranking.features import NAMES, Cosines, features
from packetgate.tools.ranking.trees import Trees
from packetgate.tools.ranking.vectors import Vectors

STATIC_AT_ONCE = 3_000
"""New tools whose words' vectors are averaged while the request waits."""
BY_VECTOR = 32
"""Candidates for their vectors."""
BY_PART = 16
"""Further candidates for what one part of the request says."""


class Spaces:
    """The spaces that tools may be compared in: the encoder's, and that of single words until its vectors are made."""

    def __init__(self, path: Path | None = None, encoder: Encoder | None = None, weights: Path = WEIGHTS) -> None:
        """Keep the encoder's vectors in the file `path`, or in memory alone. Weights are read when they are needed."""
        self.mix = weights / "mix.npz"
        """What weighs the features."""
        self.fine = Vectors(encoder or sentence_encoder(weights), path)
        self.coarse = Vectors(static_encoder(weights), at_once=STATIC_AT_ONCE)

    def space(self, texts: Mapping[str, str], before: "Space | None") -> "Space | None":
        """Return the best space that has the vector of every tool now, none where there is none yet.

        `texts` are what is read of the tools, by name; what `before` knows of them is taken over.
        """
        for kind, vectors in (("fine", self.fine), ("coarse", self.coarse)):
            if before is not None and before.kind == kind and before.texts is texts:
                return before
            rows = _rows(texts, vectors, before if before is not None and before.kind == kind else None)
            if rows is not None:
                return Space(kind, texts, rows, vectors, mixes(self.mix)[kind])
        return None


def _rows(texts: Mapping[str, str], vectors: Vectors, before: "Space | None") -> Floats | None:
    """Return a row a tool, those of `before` where its text is the same; None where some are still being made."""
    place = before.place if before is not None else {}
    known = {name: place[name] for name, text in texts.items() if before and before.texts.get(name) == text}
    new = [text for name, text in texts.items() if name not in known]
    made = vectors.of(new) if new else None
    if new and made is None:
        return None
    if before is None or not known:
        return made
    rows = np.empty((len(texts), before.rows.shape[1]), np.float32)
    is_known = np.array([name in known for name in texts])
    rows[is_known] = before.rows[list(known.values())]
    if made is not None:
        rows[~is_known] = made
    return rows


class Space:
    """All tools of one catalogue as vectors of one encoder."""

    def __init__(self, kind: str, texts: Mapping[str, str], rows: Floats, vectors: Vectors, mix: Trees) -> None:
        self.kind = kind
        self.texts = texts
        """What was read of the tools, by name."""
        self.rows = np.ascontiguousarray(rows, np.float32)
        self.encoder = vectors.encoder
        self.place = {name: place for place, name in enumerate(texts)}
        """A tool's row."""
        self.is_final = kind == "fine"
        self._names = list(texts)
        self._mix = mix
        self._vectors = vectors

    def row(self, name: str) -> Floats:
        """Return a tool's vector."""
        row: Floats = self.rows[self.place[name]]
        return row

    def scores(self, asked: Asked, lexical: Lexical) -> Mapping[str, float]:
        """Return the score of each candidate, from 0 to 1."""
        names, rows = self.candidates(asked, lexical)
        if not names:
            return {}
        margins = self._mix.scores(rows).astype(np.float64).round(DIGITS)
        return dict(zip(names, (1 / (1 + np.exp(-margins))).tolist(), strict=True))

    def candidates(self, asked: Asked, lexical: Lexical) -> tuple[list[str], Floats]:
        """Return the candidates and their features."""
        cosines = [self._cosines(text) for text in asked.texts]
        whole, part = cosines[0], np.maximum.reduce(cosines)
        near = [*_largest(whole, BY_VECTOR), *(_largest(part, BY_PART) if len(asked.texts) > 1 else ())]
        floor = self.encoder.floor
        names = list(dict.fromkeys([*asked.best, *(self._names[at] for at in near if part[at] >= floor)]))
        if not names:
            return names, np.zeros((0, len(NAMES)), np.float32)
        places = [self.place[name] for name in names]
        return names, features(names, asked, lexical, Cosines(whole[places], part[places]))

    def _cosines(self, text: str) -> Floats:
        """Return how near the request is to each tool, rounded."""
        cosines: Floats = np.einsum("ij,j->i", self.rows, self._vectors.of_request(text))  # einsum wakes no threads
        return cosines.round(DIGITS)


def _largest(scores: Floats, many: int) -> NDArray[np.intp]:
    """Return the places of the largest scores, in order of place; of equal scores the first places."""
    if len(scores) <= many:
        return np.arange(len(scores))
    least = np.partition(scores, -many)[-many]
    above, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    return np.sort(np.concatenate([above, equal[: many - len(above)]]))


@cache
def mixes(path: Path) -> dict[str, Trees]:
    """Return what weighs the features in each space.

    Raises:
        WeightsError: its file is missing or broken.
    """
    arrays = arrays_of(path)
    return {kind: Trees.from_arrays(arrays, kind) for kind in ("fine", "coarse")}
