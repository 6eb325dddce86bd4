"""`openai:` against llama-cpp-python's own server and real llama.cpp."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel, Field
from support.gguf_model import write_tiny_gguf
from support.llama_server import serve_llama

from packetgate.models.endpoint import Endpoint
from packetgate.models.openai.connect import check_endpoint, connect
from packetgate.models.openai.model import OpenAICompatible
from packetgate.models.schemas import CONFIDENCE, AnswerForm, Choice, obj
from packetgate.models.structured import decide
from packetgate.state.errors import DecisionError

pytestmark = pytest.mark.xdist_group("llama_server")

ANSWER = '{"approved":true,"confidence":0.9}'
FORM = AnswerForm(
    "verdict",
    obj(approved={"type": "boolean"}, confidence=CONFIDENCE),
    choices=(Choice.among("approved", values=[True, False]),),
)


class Verdict(BaseModel):
    approved: bool
    confidence: float = Field(ge=0, le=1)


@pytest.fixture(scope="module")
def base_url(tiny_gguf: Path) -> Iterator[str]:
    files = {
        "tiny": tiny_gguf,
        "tiny-without-logits": tiny_gguf,
        "certain": write_tiny_gguf(tiny_gguf.with_name("certain.gguf"), ANSWER),
    }
    with serve_llama(files) as base_url:
        yield base_url


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)


async def model_at(base_url: str, name: str) -> OpenAICompatible:
    return OpenAICompatible(await asyncio.to_thread(connect, name, Endpoint(base_url, None, timeout=60)))


async def ask(model: OpenAICompatible, seed: int = 0, form: AnswerForm = FORM):
    sampling = {"temperature": 1.0, "max_tokens": 60}
    return await model.answer([HumanMessage(f"Judge number {seed}. Answer in JSON.")], form, sampling=sampling)


async def test_it_is_there(base_url: str):
    model = await model_at(base_url, "tiny")
    await check_endpoint(model.chat, model.chat.root_async_client)


async def test_the_schema_holds_a_model_of_random_weights(base_url: str):
    """Its keys and types, that is: llama.cpp keeps no number in its range."""
    model = await model_at(base_url, "tiny")
    answers = [await ask(model, seed) for seed in range(12)]
    whole = [answer for answer in answers if not answer.cut_off]
    assert len(whole) > 3
    for answer in whole:
        value = json.loads(answer.text)
        assert (answer.held_by, set(value)) == ("json_object", {"approved", "confidence"})
        (found,) = answer.choices
        assert (found.path, json.loads(found.value)) == (("approved",), value["approved"])
        assert 0 < found.probability < 1


async def test_what_the_server_refuses_is_remembered(base_url: str, capfd: pytest.CaptureFixture[str]):
    model = await model_at(base_url, "tiny-without-logits")
    first, second = await ask(model), await ask(model)
    assert (first.held_by, second.held_by) == ("json_object", "json_object")
    assert first.choices == second.choices == ()
    printed = capfd.readouterr().err
    tries = 1 + model.chat.max_retries
    assert printed.count("Exception: 1 validation error") == tries
    assert printed.count("Exception: logprobs is not supported") == tries


async def test_a_whole_decision(base_url: str):
    answer = await decide(
        await model_at(base_url, "certain"),
        [HumanMessage("Judge")],
        Verdict,
        FORM,
        temperature=0,
        max_tokens=60,
    )
    assert answer.value == Verdict(approved=True, confidence=0.9)
    found = answer.probability("approved")
    assert found is not None
    assert found > 0.99
    assert answer.usage.input_tokens > 0


async def test_stream(base_url: str):
    model = await model_at(base_url, "certain")
    chunks = [chunk.text async for chunk in model.chat.astream("Hello", temperature=0, max_tokens=60)]
    assert "".join(chunks) == ANSWER
    assert len([chunk for chunk in chunks if chunk]) > 3


async def test_a_prompt_that_is_too_long(base_url: str):
    model = await model_at(base_url, "certain")
    with pytest.raises(DecisionError, match=r"HTTP 400.*maximum context length is 1024 tokens"):
        await model.answer([HumanMessage("x" * 2000)], FORM, sampling={"max_tokens": 60})
    assert (await ask(model)).held_by == "json_object"


async def test_a_model_that_is_not_served(base_url: str):
    """llama.cpp's server then answers with the first it has."""
    assert (await ask(await model_at(base_url, "another"))).text


async def test_two_at_once(base_url: str):
    model = await model_at(base_url, "certain")
    answers = await asyncio.gather(*(ask(model, seed) for seed in range(4)))
    assert {answer.text for answer in answers} == {ANSWER}
