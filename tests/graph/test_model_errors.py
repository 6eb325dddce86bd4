"""The whole way of a model's failure: told by the transport, met by a reflex, recorded in the packet."""

import asyncio
from dataclasses import dataclass

import pytest
from support.graphs import run_once
from support.notebook import Notebook
from support.prompts import call, review
from support.scripted_openai import ScriptedOpenAI, free_port
from support.scripted_replies import CutOff, HttpError, Message, Raw, Reply, Stall

from packetgate.deciders.choosing import language_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.endpoint import Endpoint
from packetgate.models.openai.connect import connect
from packetgate.models.openai.model import OpenAICompatible
from packetgate.state.packet import CognitionPacket
from packetgate.state.transitions import ToolExecutionStatus

KEY = "sk-very-secret-key"
READ_A = call("notebook.read_note", name="a")
STAGES = ["select_tool", "review_selection", "respond"]
ONCE = ["select_tool", "review_selection"]
"""Where why it is not there is told once: later stages do not ask, and of them the review says that it failed."""


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.001)


async def deciders_at(base_url: str, seconds: float = 10) -> Deciders:
    model = OpenAICompatible(await asyncio.to_thread(connect, "scripted", Endpoint(base_url, KEY, timeout=seconds)))

    async def source() -> OpenAICompatible:
        return model

    return language_deciders(source, source)


def assert_reflexes_decided(packet: CognitionPacket, base_url: str, told: str, *, once: bool) -> None:
    """Nobody reviewed, so nothing ran; and the packet says why."""
    assert [error.stage for error in packet.metrics.errors] == (ONCE if once else STAGES)
    for at, error in enumerate(packet.metrics.errors):
        assert f"scripted at {base_url}" in error.message
        assert (told if at == 0 or not once else "was not asked again in this turn") in error.message
    fallbacks = [entry.step for entry in packet.reasoning.reflection_log if entry.is_fallback]
    assert fallbacks == ["select_tool", "respond"]
    (skipped,) = packet.routing.all_calls
    assert (skipped.status, skipped.review_confidence) == (ToolExecutionStatus.SKIPPED, 0.0)
    assert "notebook.read_note (name=a) was skipped" in packet.response.candidate
    assert KEY not in packet.model_dump_json()


@dataclass(frozen=True)
class Failure:
    """What the server does to every request, and what the packet says of it."""

    reply: Reply
    told: str
    once: bool = False
    """Whether the turn gives the model up."""


FAILURES = [
    Failure(HttpError(401, f"wrong key {KEY}"), "refuses the API key (HTTP 401): check OPENAI_API_KEY", once=True),
    Failure(HttpError(429, "slow down", retry=True, retry_after="3600"), "HTTP 429", once=True),
    Failure(HttpError(500, f"boom {KEY}", retry=True), "HTTP 500"),
    Failure(HttpError(503, "loading"), "HTTP 503", once=True),
    Failure(HttpError(400, "the context length is too small"), "HTTP 400"),
    Failure(HttpError(400, "Bad Request"), "HTTP 400"),
    Failure(Stall(), "did not answer in time: raise PACKETGATE_MODEL_TIMEOUT", once=True),
    Failure(Stall("Hel"), "did not answer in time", once=True),
    Failure(CutOff("Hel"), "broke off"),
    Failure(Raw("<html>"), "no chat completion"),
    Failure(Raw('{"choices": []}'), "no chat completion"),
    Failure(Message({"content": None, "refusal": "I won't."}), "refuses to answer: I won't."),
    Failure(Message({"content": ""}, "content_filter"), "content filter"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: str(failure.reply)[:60])
async def test_a_model_that_fails_at_every_stage(failure: Failure, notebook: Notebook, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(*[failure.reply] * 60)
    deciders = await deciders_at(scripted_openai.base_url, 0.2 if isinstance(failure.reply, Stall) else 10)
    packet = await run_once(deciders, "Read note name=a", notebook)
    assert notebook.calls == []
    assert_reflexes_decided(packet, scripted_openai.base_url, failure.told, once=failure.once)
    assert not failure.once or len(scripted_openai.requests) == 1


async def test_nobody_listens(notebook: Notebook):
    base_url = f"http://127.0.0.1:{free_port()}/v1"
    packet = await run_once(await deciders_at(base_url), "Read note name=a", notebook)
    assert notebook.calls == []
    assert_reflexes_decided(packet, base_url, "cannot be reached: check that the server runs", once=True)


async def test_a_server_that_refuses_much_is_used_as_it_is(notebook: Notebook, scripted_openai: ScriptedOpenAI):
    scripted_openai.refuses = {
        "response_format": HttpError(400, "unknown field response_format"),
        "tools": HttpError(400, "this model does not support tools"),
        "logprobs": HttpError(400, "logprobs are not supported"),
        "stream_options": HttpError(400, "Extra inputs are not permitted"),
        "temperature": HttpError(400, "temperature is fixed", param="temperature"),
    }
    scripted_openai.script(READ_A, review(0.9), "It says apples.")
    packet = await run_once(await deciders_at(scripted_openai.base_url), "Read note a", notebook)
    assert notebook.called == ["read_note"]
    assert packet.response.candidate == "It says apples."
    assert packet.metrics.errors == ()
    kept = {"model", "messages", "stream", "max_tokens", "top_p"}
    plain = [request for request in scripted_openai.requests if request.keys() <= kept]
    assert len(plain) == 3
