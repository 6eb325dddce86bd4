import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.llama_contexts import check, logits, read, tokens

from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.weights import LlamaWeights

pytestmark = pytest.mark.usefixtures("plain_attention")


@pytest.fixture(scope="module")
def weights(tiny_gguf: Path) -> LlamaWeights:
    return LlamaWeights(str(tiny_gguf), {})


def test_the_logits_depend_on_the_prompt(weights: LlamaWeights):
    context = LlamaContext(weights, {})
    read(context, tokens(40))
    one = logits(context, weights)
    read(context, [*tokens(40)[:5], 7, *tokens(40)[6:]])
    assert np.abs(one - logits(context, weights)).max() > 0.1


A, B, C = tokens(90, seed=1), tokens(90, seed=2), tokens(90, seed=3)


@dataclass(frozen=True)
class Case:
    prompts: list[list[int]]
    known: list[int]
    """How many tokens of each were known."""


CASES = {
    "the same": Case([A, A], [0, 89]),
    "extended": Case([A, A + B], [0, 90]),
    "cut": Case([A, A[:60]], [0, 59]),
    "diverging late": Case([A, A[:60] + B, A], [0, 60, 60]),
    "diverging early": Case([A, A[:20] + B, A], [0, 20, 89]),
    "forked, and the branches go on": Case([A, A[:20] + B, A + C, A[:20] + B + C], [0, 20, 90, 110]),
    "nothing in common": Case([A, B, A, B], [0, 0, 89, 89]),
    "one token": Case([A[:1], A[:1], A], [0, 0, 1]),
}


@pytest.mark.parametrize("batch", [512, 9, 1])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_cached_tokens_are_not_evaluated_again(weights: LlamaWeights, case: Case, batch: int):
    context = LlamaContext(weights, {"n_ctx": 512, "n_batch": batch})
    for prompt, known in zip(case.prompts, case.known, strict=True):
        assert read(context, prompt) == known
        check(context, weights, prompt)


def test_written_tokens_are_cached(weights: LlamaWeights):
    context = LlamaContext(weights, {"n_ctx": 512})
    read(context, A)
    for token in B[:5]:
        context.append([token])
    check(context, weights, A + B[:5])
    assert read(context, A + B[:5] + C) == 95
    check(context, weights, A + B[:5] + C)


@pytest.mark.parametrize("batch", [512, 9, 1])
def test_more_tokens_than_a_batch_can_follow(weights: LlamaWeights, batch: int):
    context = LlamaContext(weights, {"n_ctx": 512, "n_batch": batch})
    read(context, A)
    context.append(B)
    check(context, weights, A + B)


def test_forget_clears_the_cache(weights: LlamaWeights):
    context = LlamaContext(weights, {"n_ctx": 512})
    read(context, A)
    read(context, B)
    context.forget()
    assert read(context, A) == 0
    check(context, weights, A)


class After(threading.Event):
    """Is set once it was looked at that often."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def is_set(self) -> bool:
        self._looks -= 1
        return self._looks < 0


@pytest.mark.parametrize("looks", [0, 1, 3])
def test_a_cancelled_prompt_can_continue(weights: LlamaWeights, looks: int):
    context = LlamaContext(weights, {"n_ctx": 512, "n_batch": 20})
    assert context.read(A, After(looks)) == 0
    assert context.size - context.room == 20 * looks
    assert read(context, A) == 20 * looks
    check(context, weights, A)
