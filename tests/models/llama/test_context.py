import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import pytest
from support.gguf_model import write_gguf, write_tiny_gguf

from packetgate.models.llama.context import SLOTS, LlamaContext
from packetgate.models.llama.weights import LlamaWeights
from packetgate.state.errors import DecisionError

pytestmark = pytest.mark.usefixtures("plain_attention")


def tokens(count: int, seed: int = 0) -> list[int]:
    """Return random text tokens of a byte vocabulary."""
    return [int(token) for token in np.random.default_rng(seed).integers(3, 259, count)]


def read(context: LlamaContext, prompt: Sequence[int]) -> int:
    """Evaluate a prompt; return the number of cached tokens."""
    return context.read(prompt, threading.Event())


def check(context: LlamaContext, weights: LlamaWeights, text: Sequence[int]) -> None:
    """Check that the context contains exactly this text."""
    fresh = LlamaContext(weights, {"n_ctx": 512})
    read(fresh, text)
    np.testing.assert_allclose(context.logits, fresh.logits, atol=1e-3)


A, B, C = tokens(90, seed=1), tokens(90, seed=2), tokens(90, seed=3)


@dataclass(frozen=True)
class Case:
    prompts: list[list[int]]
    known: list[int]
    """The number of cached tokens of each prompt."""


CASES = {
    "the same": Case([A, A], [0, 89]),
    "extended": Case([A, A + B], [0, 90]),
    "diverging early": Case([A, A[:20] + B, A], [0, 20, 89]),
    "forked, and the branches go on": Case([A, A[:20] + B, A + C, A[:20] + B + C], [0, 20, 90, 110]),
    "nothing in common": Case([A, B, A, B], [0, 0, 89, 89]),
    "one token": Case([A[:1], A[:1], A], [0, 0, 1]),
}


@pytest.mark.parametrize("batch", [512, 9])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_cached_tokens_are_not_evaluated_again(weights: LlamaWeights, case: Case, batch: int):
    context = LlamaContext(weights, {"n_ctx": 512, "n_batch": batch})
    for prompt, known in zip(case.prompts, case.known, strict=True):
        assert read(context, prompt) == known
        check(context, weights, prompt)


@pytest.mark.parametrize("batch", [512, 9])
def test_more_tokens_than_a_batch_can_follow(weights: LlamaWeights, batch: int):
    context = LlamaContext(weights, {"n_ctx": 512, "n_batch": batch})
    read(context, A)
    context.append(B)
    check(context, weights, A + B)
    assert read(context, A + B + C) == 180
    check(context, weights, A + B + C)


class SetAfter(threading.Event):
    """An event that is set after `looks` checks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    def is_set(self) -> bool:
        self._looks -= 1
        return self._looks < 0


@pytest.mark.parametrize("looks", [0, 1, 3])
def test_a_cancelled_prompt_can_continue(weights: LlamaWeights, looks: int):
    context = LlamaContext(weights, {"n_ctx": 512, "n_batch": 20})
    assert context.read(A, SetAfter(looks)) == 0
    assert context.size - context.room == 20 * looks
    assert read(context, A) == 20 * looks
    check(context, weights, A)


CELLS = 256
"""The smallest context of llama.cpp."""


def test_each_slot_caches_a_prompt(weights: LlamaWeights):
    context = LlamaContext(weights, {"n_ctx": 2048})
    prompts = [tokens(30, seed) for seed in range(SLOTS + 1)]
    assert [read(context, prompt) for prompt in prompts[:-1]] == [0] * SLOTS
    assert [read(context, prompt) for prompt in prompts[:-1]] == [29] * SLOTS
    assert read(context, prompts[-1]) == 0
    assert [read(context, prompt) for prompt in prompts[2:]] == [29] * (SLOTS - 1)
    assert read(context, prompts[0]) == 0  # the least recently used prompt was evicted
    check(context, weights, prompts[0])
    assert read(context, prompts[2]) == 29
    check(context, weights, prompts[2])


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


@pytest.mark.parametrize(
    ("trained", "wanted", "size"),
    [(512, None, 512), (512, 256, 256), (512, 4096, 512), (512, 0, 512), (16384, None, 8192)],
)
def test_the_context_has_the_configured_size(
    llama_cpp_installed: None, tmp_path: Path, trained: int, wanted: int | None, size: int
):
    weights = LlamaWeights(str(write_tiny_gguf(tmp_path / "tiny.gguf", context=trained)), {})
    assert LlamaContext(weights, {} if wanted is None else {"n_ctx": wanted}).size == size


PROMPTS = [
    (A, 0),
    (A + B, 90),
    (A, 0),
    (A[:60], 0),
    (A + B + C, 180),
    (A[:20] + B, 0),
    *((tokens(50, seed), 0) for seed in range(10, 20)),
    (A, 0),
    (A + C, 90),
]
"""Prompts in order, with their numbers of cached tokens. Only a prompt that continues another has cached tokens."""


WIDTH, INNER, STATE, RANK, KERNEL = 64, 128, 8, 4, 4
UNKNOWN, CONTROL, BYTE = gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.BYTE


def write_tiny_mamba(path: Path) -> Path:
    """Write a model without attention and chat template, whose prompt cache cannot be truncated."""
    special = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    vocabulary = [*special, *((f"<0x{byte:02X}>", BYTE) for byte in range(256))]

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_feed_forward_length(0)
        writer.add_head_count(0)
        writer.add_ssm_conv_kernel(KERNEL)
        writer.add_ssm_inner_size(INNER)
        writer.add_ssm_state_size(STATE)
        writer.add_ssm_time_step_rank(RANK)
        writer.add_add_space_prefix(False)

    tensors = mamba_weights(len(vocabulary))
    return write_gguf(path, vocabulary, tensors, add, width=WIDTH, context=4096, architecture="mamba")


def mamba_weights(tokens: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(0, 0.3, shape)

    block = {
        "attn_norm.weight": np.ones(WIDTH),
        "ssm_in.weight": normal(2 * INNER, WIDTH),
        "ssm_conv1d.weight": normal(INNER, KERNEL),
        "ssm_conv1d.bias": normal(INNER),
        "ssm_x.weight": normal(RANK + 2 * STATE, INNER),
        "ssm_dt.weight": normal(INNER, RANK),
        "ssm_dt.bias": normal(INNER),
        "ssm_a": -np.abs(normal(INNER, STATE)),
        "ssm_d": normal(INNER),
        "ssm_out.weight": normal(WIDTH, INNER),
    }
    return {
        "token_embd.weight": normal(tokens, WIDTH),
        "output_norm.weight": np.ones(WIDTH),
        "output.weight": normal(tokens, WIDTH),
        **{f"blk.0.{name}": weights for name, weights in block.items()},
    }


@pytest.fixture(scope="module")
def mamba(llama_cpp_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_mamba(tmp_path_factory.mktemp("gguf") / "mamba.gguf")


@pytest.mark.parametrize("batch", [512, 9])
def test_a_recurrent_model_is_evaluated_from_the_start(mamba: Path, batch: int):
    weights = LlamaWeights(str(mamba), {})
    assert not weights.can_cut_cache
    context = LlamaContext(weights, {"n_ctx": 512, "n_batch": batch})
    for prompt, known in PROMPTS:
        assert read(context, prompt) == known
        check(context, weights, prompt)
