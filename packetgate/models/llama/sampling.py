"""Choose the next token with llama.cpp's samplers and a grammar mask."""

import random
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.weights import LlamaWeights

with suppress(ImportError):  # `check_installed` reports a missing package
    import llama_cpp

if TYPE_CHECKING:
    from llguidance import LLMatcher

Logits = npt.NDArray[np.float32]

TOP_K, MIN_P = 40, 0.05
"""llama.cpp's defaults."""
_PENALTY_TOKENS, _PENALTY = 64, 1.1
"""Number of last tokens whose repetition is penalized, and the penalty; prevents loops of small models."""
_PERIODS, _LOOP_TOKENS = 4, 48
"""Least number of repetitions, and of repeated tokens, in a loop."""


class Sampler:
    """The samplers of one request, in llama.cpp's usual order."""

    def __init__(self, sampling: Mapping[str, Any]) -> None:
        seed = sampling.get("seed")
        self._chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        weakref.finalize(self, llama_cpp.llama_sampler_free, self._chain)
        if sampling["temperature"] <= 0:
            samplers = [llama_cpp.llama_sampler_init_greedy()]
        else:
            samplers = [
                llama_cpp.llama_sampler_init_top_k(TOP_K),
                llama_cpp.llama_sampler_init_top_p(sampling.get("top_p", 0.95), 1),
                llama_cpp.llama_sampler_init_min_p(MIN_P, 1),
                llama_cpp.llama_sampler_init_temp(sampling["temperature"]),
                llama_cpp.llama_sampler_init_dist(random.getrandbits(31) if seed is None else seed),
            ]
        for one in samplers:
            llama_cpp.llama_sampler_chain_add(self._chain, one)

    def sample(self, context: LlamaContext) -> int:
        """Return the next token from the context's logits."""
        token: int = llama_cpp.llama_sampler_sample(self._chain, context.handle, -1)
        return token


def lower_repeated(logits: Logits, tokens: Sequence[int]) -> None:
    """Lower the logits of recently written tokens, in place."""
    recent = list({*tokens[-_PENALTY_TOKENS:]})
    logits[recent] = np.where(logits[recent] > 0, logits[recent] / _PENALTY, logits[recent] * _PENALTY)


def ends_in_loop(tokens: Sequence[int]) -> bool:
    """Whether an answer ends in a repeated sequence of tokens."""
    for period in range(1, len(tokens) // _PERIODS + 1):
        length = max(_LOOP_TOKENS, _PERIODS * period)
        if length > len(tokens):
            return False
        end = tokens[-length:]
        if end[period:] == end[:-period]:
            return True
    return False


def logits_of(context: LlamaContext, weights: LlamaWeights) -> Logits:
    """Return the next token's logits, shape (vocabulary,): a view of llama.cpp's memory until the next evaluation."""
    return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context.handle, -1), shape=(weights.size,))


class Mask:
    """Applies a grammar to logits."""

    def __init__(self, weights: LlamaWeights) -> None:
        # The grammar reads a token such as `<unk>` as the text `<unk>`, but the token adds no text to the answer.
        self._without_text = np.array([not piece and not weights.is_end(at) for at, piece in enumerate(weights.pieces)])

    def apply(self, matcher: "LLMatcher", logits: Logits) -> None:
        """Set the logits of forbidden tokens to minus infinity, in place."""
        bits = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
        allowed = np.unpackbits(bits, bitorder="little", count=self._without_text.size).astype(bool)
        written = allowed & ~self._without_text
        # a call may begin with a control token, which has no text
        logits[~(written if written.any() else allowed)] = -np.inf
