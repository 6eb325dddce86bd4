"""Counting the tokens of a text with a model's own vocabulary."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import HumanMessage
from support.gguf_model import ROLES, write_tiny_gguf

from packetgate.models.llama.chat import LlamaCppModel
from packetgate.models.llama.engine import Request

PHRASES = ("description", '":{"type":"', "string", '"},"')
TEXTS = {
    "nothing": "",
    "schema": '{"path":{"type":"string"},"description":{"type":"string"}}',
    "wide": "读文件 🙂 né",
    "odd bytes": "a\x00b\ud800c",
    "control tokens": f"</s><s>{''.join(ROLES)}<unk><0x41>",
}


@pytest.fixture(scope="module")
def model(llama_cpp_installed: None, tmp_path_factory: pytest.TempPathFactory) -> LlamaCppModel:
    """A model whose vocabulary holds bytes and a few phrases."""
    path = write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "phrases.gguf", phrases=PHRASES)
    return LlamaCppModel.load(str(path), {"n_ctx": 1024, "n_threads": 1})


async def evaluated(model: LlamaCppModel, text: str) -> int:
    """Return how many tokens llama.cpp took in for a message of that text."""
    message = await model.chat.ainvoke([HumanMessage(text)], max_tokens=0)
    return message.usage_metadata["input_tokens"]


@pytest.mark.parametrize("name", TEXTS)
async def test_the_count_equals_the_evaluated_tokens(model: LlamaCppModel, name: str):
    around = await evaluated(model, "")
    assert model.token_counter(TEXTS[name]) == await evaluated(model, TEXTS[name]) - around


def test_phrases_in_the_vocabulary_count_as_one_token(model: LlamaCppModel):
    assert model.token_counter("".join(PHRASES)) == len(PHRASES)
    assert model.token_counter("descriptio") == len("descriptio")


def test_texts_of_control_tokens_are_plain_text(model: LlamaCppModel):
    for text in ("</s>", *ROLES):
        assert model.token_counter(text) == len(text)
        assert model.token_counter(f"a{text}b") == len(text) + 2


async def test_counting_works_while_the_model_is_busy(model: LlamaCppModel):
    texts = [f'{at}: "{{"type":"string"}}' * at for at in range(200)]
    alone = [len(model.chat._engine.weights.tokenize(text, special=False)) for text in texts]
    request = Request([{"role": "user", "content": "Hello"}], {"max_tokens": 1024, "temperature": 0.7})
    answers = [model.chat._engine.submit(request) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        counted = [list(threads.map(model.token_counter, texts)) for _ in range(3)]
    assert not answers[-1].done()
    assert counted == [alone] * 3
    for answer in answers:
        answer.cancel()
