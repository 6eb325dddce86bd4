from pathlib import Path

import pytest
from support.llama_contexts import check, read, tokens
from support.mamba_model import write_tiny_mamba

from packetgate.models.llama.context import LlamaContext
from packetgate.models.llama.engine import LlamaEngine, Request
from packetgate.models.llama.weights import LlamaWeights

A, B, C = tokens(90, seed=1), tokens(90, seed=2), tokens(90, seed=3)
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
"""What is read one after the other, and how much of it is known: only a prompt that goes on where another ended."""


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


def test_a_recurrent_model_answers(mamba: Path):
    engine = LlamaEngine(str(mamba), {"n_ctx": 512})
    requests = [
        Request([{"role": "user", "content": content}], {"max_tokens": 20, "temperature": 0})
        for content in ("one", "two", "one", "two", "one")
    ]
    texts = [engine.submit(request).result(timeout=60).text for request in requests]
    assert texts == [*texts[:2], *texts[:2], texts[0]]
    assert texts[0] != texts[1]
