"""How probably each of some tools serves a request: all through the encoder, each after the request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from deciders.judge.encoding import encode_request, encode_tool, joined
from tools.learned import session_of, tokenizer_of
from tools.ranking import encoder as ranking
from tools.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

WEIGHTS = Path(__file__).parent / "weights"
AT_ONCE = 4
"""Tools that are read in one batch: what a batch needs of memory grows with it, what a tool takes of time does not."""
THREADS = 2
REMEMBERED = 64
"""Requests whose judgements are kept at hand."""


@dataclass(frozen=True)
class Encoder:
    """The weights and the vocabulary; safe to share between threads."""

    session: "InferenceSession"
    tokenizer: "Tokenizer"
    _one_at_a_time: Lock = field(default_factory=Lock, repr=False, compare=False)
    """A batch takes all cores, and the memory of the longest is kept: one more beside it would only keep more."""

    def judge(self, request: str, specs: Sequence[ToolSpec]) -> list[float]:
        """Return the probability that each tool serves the request, in their order. Blocking."""
        asked = encode_request(request, self.tokenizer)
        pairs = [joined(asked, encode_tool(spec, self.tokenizer)) for spec in specs]
        by_length = sorted(range(len(pairs)), key=lambda at: len(pairs[at][0]))  # so that little of a batch is padding
        judged = np.zeros(len(pairs))
        for first in range(0, len(pairs), AT_ONCE):
            batch = by_length[first : first + AT_ONCE]
            with self._one_at_a_time:
                (scores,) = self.session.run(["serves"], _batch([pairs[at] for at in batch]))
            judged[batch] = 1 / (1 + np.exp(-scores))
        return [float(probability) for probability in judged]


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


def _batch(pairs: Sequence[tuple[list[int], list[int], list[int]]]) -> dict[str, Any]:
    """Return the pairs as arrays; where no tool has parameters, it has one marker."""
    longest = max(len(ids) for ids, _, _ in pairs)
    most = max([1, *(len(markers) for _, _, markers in pairs)])
    arrays = {name: np.zeros((len(pairs), longest), dtype=np.int64) for name in ("ids", "mask", "segments")}
    arrays["markers"] = np.zeros((len(pairs), most), dtype=np.int64)
    for at, (ids, segments, markers) in enumerate(pairs):
        arrays["ids"][at, : len(ids)] = ids
        arrays["mask"][at, : len(ids)] = 1
        arrays["segments"][at, : len(ids)] = segments
        arrays["markers"][at, : len(markers)] = markers
    return arrays
