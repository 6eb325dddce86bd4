"""Read prompts with a real context, and compare its logits with those of a new context."""

import threading
from collections.abc import Sequence

import numpy as np

from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.sampling import Logits, logits_of
from packetgate.models.llama.weights import LlamaWeights


def tokens(count: int, seed: int = 0) -> list[int]:
    """Return random tokens of a byte vocabulary that are text."""
    return [int(token) for token in np.random.default_rng(seed).integers(3, 259, count)]


def read(context: LlamaContext, prompt: Sequence[int]) -> int:
    """Evaluate a prompt; return how much of it was known."""
    return context.read(prompt, threading.Event())


def logits(context: LlamaContext, weights: LlamaWeights) -> Logits:
    """Return the logits of the next token."""
    return logits_of(context, weights).copy()


def check(context: LlamaContext, weights: LlamaWeights, text: Sequence[int]) -> None:
    """Assert that the context has read just this text."""
    fresh = LlamaContext(weights, {"n_ctx": 512})
    read(fresh, text)
    np.testing.assert_allclose(logits(context, weights), logits(fresh, weights), atol=1e-3)
