"""How people ask for the tools that Packetgate brings along: learned from many requests for each, and for none of them.

A linear model over the request's vector and its words, what is a path or a number being one word.
`python -m benchmarks.train.practice` fits it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from packetgate.deciders.reflex.serving import log_odds
from packetgate.deciders.values.mentions import read
from packetgate.tools.builtin.tool import BUILT_IN
from packetgate.tools.learned import DIGITS, arrays_of
from packetgate.tools.ranking.encoder import vector_of
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.words import stem_of

WEIGHTS = Path(__file__).with_name("practice.npz")
READ = 2_000
"""Characters of a request that are compared."""
VECTOR_SCALE = 3.0
"""What a vector of length one counts, beside words that count 1 each."""
NONE = ""
"""The name of "none of them"."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Practice:
    """What was learned."""

    tools: tuple[str, ...]
    words: Mapping[str, int]
    """Rows of the words that count."""
    table: Floats
    """A row a number of the vector, a word, and one for all requests; a column a tool."""

    def probabilities(self, text: str) -> Mapping[str, float]:
        """Return how probably each of the tools, or none of them, is asked for. Blocking."""
        scores = (row_of(text, self.words) @ self.table).round(DIGITS)
        powers = np.exp(scores - scores.max())
        return MappingProxyType(dict(zip(self.tools, (powers / powers.sum()).tolist(), strict=True)))


def practised(text: str, spec: ToolSpec) -> float:
    """Return the log odds that a built-in tool is asked for; 0 for any other tool, of which nothing is known."""
    if not is_practised(spec):
        return 0.0
    return log_odds(_probabilities(text)[spec.name])


def built_in(catalogue: Mapping[str, ToolSpec]) -> dict[str, ToolSpec]:
    """Return the tools of a catalogue that this was learned of."""
    return {
        name: catalogue[name] for name in load_practice().tools if name in catalogue and is_practised(catalogue[name])
    }


def is_practised(spec: ToolSpec) -> bool:
    """Whether a tool is one that this was learned of."""
    return spec.server_digest.startswith(BUILT_IN) and spec.name in load_practice().tools


def words_for(text: str) -> Iterator[str]:
    """Yield what counts of a request: stems, kinds of what is no word, pairs of them, how it begins, if it asks."""
    said = [stem_of(token.text.lower()) if token.kind == "word" else f"<{token.kind}>" for token in read(text).tokens]
    yield from said
    yield from (f"{one} {other}" for one, other in pairwise(said))
    yield from (f"^{one}" for one in said[:1])
    yield from ["?"] * ("?" in text)


def row_of(text: str, words: Mapping[str, int]) -> Floats:
    """Return a request in numbers."""
    text = text[:READ]
    counted = np.zeros(len(words) + 1)
    counted[[words[word] for word in words_for(text) if word in words]] = 1
    counted[-1] = 1
    return np.concatenate([VECTOR_SCALE * vector_of(text), counted])


@lru_cache(maxsize=256)
def _probabilities(text: str) -> Mapping[str, float]:
    return load_practice().probabilities(text)


@cache
def load_practice() -> Practice:
    """Return what was learned and is shipped.

    Raises:
        WeightsError: its file is missing or broken.
    """
    held = arrays_of(WEIGHTS)
    words = {str(word): at for at, word in enumerate(held["words"])}
    return Practice(tuple(map(str, held["tools"])), words, held["table"].astype(np.float64))
