from dataclasses import dataclass
from pathlib import Path

import pytest
from support.gguf_model import write_tiny_gguf
from support.llama_contexts import check, read, tokens

from packetgate.models.llama.context import SLOTS, LlamaContext
from packetgate.models.llama.weights import LlamaWeights
from packetgate.state.errors import DecisionError

pytestmark = pytest.mark.usefixtures("plain_attention")

CELLS = 256
"""The smallest context that llama.cpp makes."""


@pytest.fixture(scope="module")
def weights(tiny_gguf: Path) -> LlamaWeights:
    return LlamaWeights(str(tiny_gguf), {})


def test_each_slot_caches_a_prompt(weights: LlamaWeights):
    context = LlamaContext(weights, {"n_ctx": 2048})
    prompts = [tokens(30, seed) for seed in range(SLOTS + 1)]
    assert [read(context, prompt) for prompt in prompts[:-1]] == [0] * SLOTS
    assert [read(context, prompt) for prompt in prompts[:-1]] == [29] * SLOTS
    assert read(context, prompts[-1]) == 0
    assert [read(context, prompt) for prompt in prompts[2:]] == [29] * (SLOTS - 1)
    assert read(context, prompts[0]) == 0  # the one unused for longest made room
    check(context, weights, prompts[0])
    assert read(context, prompts[2]) == 29
    check(context, weights, prompts[2])


def test_the_oldest_prompts_are_evicted_if_cells_run_out(weights: LlamaWeights):
    context = LlamaContext(weights, {"n_ctx": CELLS})
    large = [tokens(150, seed) for seed in range(4)]
    for prompt in [*large, *large]:
        assert read(context, prompt) == 0
        check(context, weights, prompt)


def test_no_more_prompts_than_necessary_are_evicted(weights: LlamaWeights):
    context = LlamaContext(weights, {"n_ctx": CELLS})
    one, oldest, large, new = tokens(40, 1), tokens(40, 2), tokens(150, 3), tokens(60, 4)
    for prompt in (one, oldest, large):
        read(context, prompt)
    assert read(context, one) == 39
    assert read(context, new) == 0
    check(context, weights, new)
    assert [read(context, prompt) for prompt in (one, large, new, oldest)] == [39, 149, 59, 0]
    check(context, weights, oldest)


def test_a_fork_survives_the_eviction_of_its_origin(weights: LlamaWeights):
    context = LlamaContext(weights, {"n_ctx": CELLS, "n_batch": 16})
    origin, fork = tokens(120, 1), tokens(120, 1)[:50] + tokens(60, 2)
    read(context, origin)
    assert read(context, fork) == 50
    context.append(tokens(100, 3))
    check(context, weights, [*fork, *tokens(100, 3)])


def test_the_longest_prompt_fits(weights: LlamaWeights):
    context = LlamaContext(weights, {"n_ctx": CELLS})
    assert context.size == CELLS
    prompt = tokens(CELLS - 1)
    read(context, prompt)
    assert context.room == 1
    check(context, weights, prompt)
    context.append([5])
    assert context.room == 0
    with pytest.raises(DecisionError, match=r"tiny\.gguf stopped: its context is full.*n_ctx"):
        context.append([6])
    assert read(context, prompt) == 0
    check(context, weights, prompt)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (tokens(CELLS), r"too long for tiny\.gguf: 256 tokens in a context of 256.*n_ctx=N.*at most 32768"),
        ([], r"the prompt for tiny\.gguf is empty"),
    ],
)
def test_a_refused_prompt_changes_nothing(weights: LlamaWeights, prompt: list[int], message: str):
    context = LlamaContext(weights, {"n_ctx": CELLS})
    read(context, tokens(90))
    with pytest.raises(DecisionError, match=message):
        read(context, prompt)
    assert read(context, tokens(90)) == 89
    check(context, weights, tokens(90))


@dataclass(frozen=True)
class Size:
    trained: int
    wanted: int | None
    size: int


@pytest.mark.parametrize(
    "case",
    [Size(512, None, 512), Size(512, 256, 256), Size(512, 4096, 512), Size(512, 0, 512), Size(16384, None, 8192)],
)
def test_the_context_has_the_configured_size(llama_cpp_installed: None, tmp_path: Path, case: Size):
    weights = LlamaWeights(str(write_tiny_gguf(tmp_path / "tiny.gguf", context=case.trained)), {})
    assert LlamaContext(weights, {} if case.wanted is None else {"n_ctx": case.wanted}).size == case.size
