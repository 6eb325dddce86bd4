import threading
from typing import Any

import pytest
from support.grammar_walk import call_of

from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.grammar import Grammars
from packetgate.models.llama.sampling import Mask, Sampler, ends_in_loop, logits_of
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.schemas import object_schema, text_schema

PROMPT = [1, *range(70, 90)]


@pytest.fixture
def context(weights: LlamaWeights) -> LlamaContext:
    context = LlamaContext(weights, {"n_ctx": 512})
    context.read(PROMPT, threading.Event())
    return context


def sampled(context: LlamaContext, seed: int | None = 1, **sampling: Any) -> list[int]:
    """Return twenty tokens, each chosen by the same logits."""
    sampler = Sampler({**sampling, "seed": seed})
    return [sampler.sample(context) for _ in range(20)]


@pytest.mark.parametrize(
    "sampling", [{"temperature": 0}, {"temperature": 0, "top_p": 1.0}, {"temperature": 5.0, "top_p": 0.0}]
)
def test_temperature_zero_takes_the_most_likely_token(
    context: LlamaContext, weights: LlamaWeights, sampling: dict[str, Any]
):
    likeliest = int(logits_of(context, weights).argmax())
    assert sampled(context, None, **sampling) == [likeliest] * 20


def test_seeds_make_sampling_repeatable(context: LlamaContext, weights: LlamaWeights):
    one, again, other = (sampled(context, seed, temperature=1.5) for seed in (7, 7, 8))
    assert one == again != other
    assert sampled(context, None, temperature=1.5) != sampled(context, None, temperature=1.5)


def test_only_tokens_that_the_grammar_allows_are_sampled(context: LlamaContext, weights: LlamaWeights):
    matcher = Grammars(weights).grammar(call_of(object_schema(a=text_schema(5)))).matcher
    Mask(weights).apply(matcher, logits_of(context, weights))
    tokens = sampled(context, temperature=50.0)
    assert {weights.pieces[token] for token in tokens} == {b"t"}


@pytest.mark.parametrize(
    ("tokens", "looped"),
    [
        ([1, 2, 3] * 16, True),
        ([7] * 48, True),
        ([9, 8, *[1, 2, 3, 4, 5] * 10], True),
        ([*range(20)] * 3, False),
        ([*range(20)] * 4, True),
        ([1, 2, 3] * 10, False),
        ([*[1, 2] * 40, 3], False),
        ([], False),
    ],
)
def test_a_loop_is_detected(tokens: list[int], looped: bool):
    assert ends_in_loop(tokens) is looped
