"""How near in meaning words of a request are to a parameter: a town to `city`, a dish to `food`."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from packetgate.deciders.values.mentions import Reading
from packetgate.deciders.values.schema import Parameter
from packetgate.tools.learned import DIGITS
from packetgate.tools.ranking.encoder import static_encoder
from packetgate.tools.text.words import words_of

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
MOST_TOKENS = 400
"""Of a request; later ones are near to nothing."""
ABOUT_CHARS = 200


class Meaning:
    """The vectors of a request's words, beside those of a tool's parameters."""

    def __init__(self, reading: Reading, parameters: Sequence[Parameter]) -> None:
        words = _vectors(tuple(token.text.lower() for token in reading.tokens[:MOST_TOKENS]))
        padded = np.zeros((len(reading.tokens) + 1, words.shape[1]), np.float32)
        padded[1 : len(words) + 1] = words
        self._sums = np.cumsum(padded, axis=0)
        self._names = _vectors(tuple(" ".join(words_of(one.name)) for one in parameters))
        self._about = _vectors(tuple(_told(one) for one in parameters))

    def near(self, first: Indices, last: Indices) -> tuple[Floats, Floats]:
        """Return how near stretches of tokens are to each parameter's name, and to all that is said of it.

        Both have a row a stretch and a column a parameter: cosines, rounded.
        """
        rows = self._sums[last] - self._sums[first]
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)
        names, about = rows @ self._names.T, rows @ self._about.T
        return np.asarray(names.round(DIGITS), np.float32), np.asarray(about.round(DIGITS), np.float32)


def _told(one: Parameter) -> str:
    return f"{' '.join(words_of(one.name))} {str(one.schema.get('description') or '')[:ABOUT_CHARS]}"


@lru_cache(maxsize=2_000)
def _vectors(texts: tuple[str, ...]) -> Floats:
    return static_encoder().vectors(texts)
