"""How probably each of some tools serves a request: all through the encoder, each after the request."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from packetgate.deciders.judge.encoding import encode_request, encode_tool, joined
from packetgate.tools.learned import DIGITS, session_of, tokenizer_of
from packetgate.tools.ranking import encoder as ranking
from packetgate.tools.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

WEIGHTS = Path(__file__).parent / "weights"
THREADS = 2
REMEMBERED = 64
"""Requests whose judgements are kept at hand."""


@dataclass(frozen=True)
class Encoder:
    """The weights and the vocabulary; safe to share between threads."""

    session: "InferenceSession"
    tokenizer: "Tokenizer"
    _one_at_a_time: Lock = field(default_factory=Lock, repr=False, compare=False)
    """A tool takes all cores, and the memory of the longest is kept: one more beside it would only keep more."""

    def judge(self, request: str, specs: Sequence[ToolSpec]) -> list[float]:
        """Return the probability that each tool serves the request, in their order. Blocking.

        Tools are read one by one: nothing is padded, and none is judged by what stands beside it.
        """
        asked = encode_request(request, self.tokenizer)
        return [self._judged(*joined(asked, encode_tool(spec, self.tokenizer))) for spec in specs]

    def _judged(self, ids: list[int], segments: list[int], markers: list[int]) -> float:
        rows = {"ids": ids, "mask": [1] * len(ids), "segments": segments, "markers": markers or [0]}
        with self._one_at_a_time:
            (scores,) = self.session.run(["serves"], {name: np.array([row], np.int64) for name, row in rows.items()})
        return 1 / (1 + math.exp(-round(float(scores[0]), DIGITS)))


def judge(request: str, specs: Sequence[ToolSpec]) -> list[float]:
    """Return the probability that each tool serves the request, or part of it, in their order. Blocking when new."""
    known = _known(request)
    new = [spec for spec in specs if spec not in known]
    if new:
        known |= zip(new, load_encoder(WEIGHTS).judge(request, new), strict=True)
    return [known[spec] for spec in specs]


@lru_cache(maxsize=REMEMBERED)
def _known(request: str) -> dict[ToolSpec, float]:
    """Return what was judged for a request so far: intent, selection and review ask the same."""
    return {}


@lru_cache(maxsize=2)
def load_encoder(folder: Path) -> Encoder:
    """Return the encoder whose weights are in a folder, read once; its vocabulary is that of the ranking.

    Raises:
        WeightsError: they are missing or broken.
    """
    return Encoder(session_of(folder / "judge.onnx", THREADS), tokenizer_of(ranking.WEIGHTS / ranking.VOCABULARY))
