import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.gguf_model import write_tiny_gguf

from packetgate.models.choices import continues
from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.grammar import Grammars
from packetgate.models.llama.sampling import TOP_K, Mask, Sampler, TokenTexts, ends_in_loop, logits_of
from packetgate.models.llama.weights import LlamaWeights
from packetgate.models.schemas import AnswerForm, object_schema, text_schema

PROMPT = [1, *range(70, 90)]


@pytest.fixture(scope="module")
def weights(tiny_gguf: Path) -> LlamaWeights:
    return LlamaWeights(str(tiny_gguf), {})


@pytest.fixture
def context(weights: LlamaWeights) -> LlamaContext:
    context = LlamaContext(weights, {"n_ctx": 512})
    context.read(PROMPT, threading.Event())
    return context


def sampled(context: LlamaContext, seed: int | None = 1, **sampling: Any) -> list[int]:
    """Return twenty tokens, each chosen by the same logits."""
    sampler = Sampler(sampling, seed)
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


@dataclass(frozen=True)
class Limit:
    sampling: dict[str, Any]
    different: range


@pytest.mark.parametrize(
    "case",
    [
        Limit({"top_p": 0.01}, range(1, 2)),
        Limit({"top_p": 1.0}, range(20, TOP_K + 1)),
    ],
)
def test_sampling_options_limit_the_tokens(context: LlamaContext, weights: LlamaWeights, case: Limit):
    tokens = {token for seed in range(5) for token in sampled(context, seed, temperature=9.0, **case.sampling)}
    assert len(tokens) in case.different


def test_only_tokens_that_the_grammar_allows_are_sampled(context: LlamaContext, weights: LlamaWeights):
    matcher = Grammars(weights).grammar(AnswerForm("test", object_schema(a=text_schema(5)))).matcher
    Mask(weights).hold(matcher, logits_of(context, weights))
    tokens = sampled(context, temperature=50.0)
    assert {weights.pieces[token] for token in tokens} == {b"{"}


@pytest.fixture(scope="module")
def worded(llama_cpp_installed: None, tmp_path_factory: pytest.TempPathFactory) -> LlamaWeights:
    """A vocabulary with tokens of several letters."""
    path = tmp_path_factory.mktemp("gguf") / "worded.gguf"
    return LlamaWeights(str(write_tiny_gguf(path, 'truefalse, "fs.read" "fs.re"tru')), {})


TEXTS = [
    [b"true", b"false"],
    [b'"fs.read"', b'"fs.write"', b'"fs.re"'],
    [b' "fs', b' "fs.read"'],
    [b"t"],
    [b"1", b"12"],
    ["é🙂".encode()],
    [b""],
    [],
    [b"\xff\xfe"],
]


@pytest.mark.parametrize("texts", TEXTS, ids=[b"|".join(texts).hex() for texts in TEXTS])
@pytest.mark.parametrize("seed", range(3))
def test_weights_equal_a_search_of_the_whole_vocabulary(worded: LlamaWeights, texts: list[bytes], seed: int):
    random = np.random.default_rng(seed)
    logits = random.normal(0, 5, worded.size).astype(np.float32)
    logits[random.random(worded.size) < 0.3] = -np.inf
    probabilities = np.exp(logits.astype(np.float64))
    wanted: dict[bytes, float] = {}
    for token, piece in enumerate(worded.pieces):
        if piece and any(continues(piece, one) for one in texts):
            wanted[piece] = wanted.get(piece, 0.0) + probabilities[token]
    found = TokenTexts(worded).weigh(texts, logits)
    if not sum(wanted.values()):
        assert sum(found.values()) == 0
        return
    assert found.keys() == wanted.keys()
    for piece, weight in found.items():
        assert weight / sum(found.values()) == pytest.approx(wanted[piece] / sum(wanted.values()), rel=1e-4)


def test_without_allowed_tokens_there_are_no_weights(worded: LlamaWeights):
    assert TokenTexts(worded).weigh([b"true"], np.full(worded.size, -np.inf, np.float32)) == {}


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
