"""Probabilities that a request asks for a built-in tool, learned from example requests.

A linear model over the request's vector and words. `python -m benchmarks.train.practice` fits it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from packetgate.deciders.reflex.signals import log_odds
from packetgate.deciders.values.mentions import parse_request
from packetgate.tools.builtin.tool import BUILT_IN
from packetgate.tools.learned import DIGITS, load_arrays
from packetgate.tools.ranking.encoder import vector_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import stem_of

PRACTICE_WEIGHTS = Path(__file__).with_name("practice.npz")
_MOST_CHARS = 2_000
VECTOR_SCALE = 3.0  # weight of a vector of length 1; words count 1 each
NO_TOOL = ""  # name of "no built-in tool"

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class RequestClassifier:
    """A linear model that gives the probability of each built-in tool."""

    tools: tuple[str, ...]
    words: Mapping[str, int]  # row of each word
    table: Doubles  # rows: components of the vector, words, and a constant. Columns: tools.

    def probabilities(self, text: str) -> dict[str, float]:
        """Return the probability of each tool. Blocking."""
        scores = (row_of(text, self.words) @ self.table).round(DIGITS)
        powers = np.exp(scores - scores.max())
        return dict(zip(self.tools, (powers / powers.sum()).tolist(), strict=True))


def builtin_log_odds(text: str, spec: ToolSpec) -> float:
    """Return the log odds that a request asks for a built-in tool; 0 for other tools."""
    return log_odds(_probabilities(text)[spec.name]) if is_known_builtin(spec) else 0.0


def is_known_builtin(spec: ToolSpec) -> bool:
    """Return whether a tool is a built-in tool for which the model gives a probability."""
    return spec.server_digest.startswith(BUILT_IN) and spec.name in load_request_classifier().tools


def words_for(text: str) -> Iterator[str]:
    """Yield the features of a request: stems, kinds, pairs of them, the first, and `?`."""
    words = [
        stem_of(token.text.lower()) if token.kind == "word" else f"<{token.kind}>"
        for token in parse_request(text).tokens
    ]
    yield from words
    yield from (f"{first} {second}" for first, second in pairwise(words))
    yield from (f"^{first}" for first in words[:1])
    yield from ["?"] * ("?" in text)


def row_of(text: str, words: Mapping[str, int]) -> Doubles:
    """Return the numeric features of a request: its scaled vector, a flag for each known word, and 1."""
    text = text[:_MOST_CHARS]
    counted = np.zeros(len(words) + 1)
    counted[[words[word] for word in words_for(text) if word in words]] = 1
    counted[-1] = 1
    return np.concatenate([VECTOR_SCALE * vector_of(text), counted])


@lru_cache(maxsize=256)
def _probabilities(text: str) -> Mapping[str, float]:
    return load_request_classifier().probabilities(text)


@cache
def load_request_classifier() -> RequestClassifier:
    """Return the shipped model. Raise WeightsError if its file is missing or broken."""
    held = load_arrays(PRACTICE_WEIGHTS)
    words = {str(word): at for at, word in enumerate(held["words"])}
    return RequestClassifier(tuple(map(str, held["tools"])), words, held["table"].astype(np.float64))
