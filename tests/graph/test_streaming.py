"""Real models' answers in LangGraph's message stream: only the answer, and no markup."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from support.gguf_model import write_tiny_gguf
from support.graphs import run_once, session
from support.scripted_openai import CutOff, ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders, reflex_deciders
from packetgate.deciders.protocols import Deciders
from packetgate.models.llama.chat import LlamaCppChat
from packetgate.models.llama.engine import LlamaEngine
from packetgate.models.model import Model
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.state.packet import TurnInput

LEAK = "The note <think>Which one did they mean...</think>says apples<tool_call>{}</tool_call>, and it is yours."
CLEAN = "The note says apples, and it is yours."

Answering = Callable[[str], Awaitable[BaseChatModel]]


def by_model(chat: BaseChatModel) -> Deciders:
    """Return deciders of which only the answer uses the model."""
    model = Model(chat)

    async def source() -> Model:
        return model

    return dataclasses.replace(reflex_deciders(), responder=language_deciders(source, source).responder)


@pytest.fixture
def scripted_chat(scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> BaseChatModel:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    found: Any = connect("scripted", Endpoint(scripted_openai.base_url, None, timeout=10))
    return found.chat if isinstance(found, Model) else found


@pytest.fixture(params=["openai", "llamacpp"])
def answering(request: pytest.FixtureRequest, tmp_path: Path) -> Answering:
    """Return a real chat model that answers with a fixed text."""

    async def make(text: str) -> BaseChatModel:
        if request.param == "openai":
            request.getfixturevalue("scripted_openai").script(text)
            return request.getfixturevalue("scripted_chat")
        request.getfixturevalue("llama_cpp_installed")
        path = await asyncio.to_thread(write_tiny_gguf, tmp_path / "answer.gguf", text)
        return LlamaCppChat(await asyncio.to_thread(LlamaEngine, str(path)))

    return make


async def test_the_answer_is_streamed_without_markup(answering: Answering):
    async with session(by_model(await answering(LEAK))) as talk:
        turn = await talk.stream()
    assert len(turn.chunks) > 3
    assert all(CLEAN.startswith("".join(turn.chunks[:count])) for count in range(len(turn.chunks) + 1))
    assert turn.shown == {turn.packet.messages[-1].id: CLEAN}
    assert turn.packet.messages[-1].text == turn.packet.response.candidate == CLEAN
    assert turn.packet.metrics.violations == 2
    assert {"custom", "updates"} <= set(turn.modes)


async def test_streaming_does_not_change_the_turn(answering: Answering):
    chat = await answering("The note says apples.")
    async with session(by_model(chat)) as talk:
        streamed = (await talk.stream()).packet
    at_once = await run_once(by_model(await answering("The note says apples.")), "Hello")
    assert streamed.response == at_once.response
    tokens, others = (packet.metrics.token_usage["respond"] for packet in (streamed, at_once))
    assert (tokens.input_tokens, tokens.output_tokens) == (others.input_tokens, others.output_tokens)
    assert tokens.output_tokens >= 4
    assert tokens.input_tokens > 4


@pytest.fixture
def deciding(scripted_chat: BaseChatModel) -> Deciders:
    """Return deciders of one model that selects and answers."""
    model = Model(scripted_chat)

    async def source() -> Model:
        return model

    return language_deciders(source, source)


async def test_a_selection_that_is_the_answer_is_streamed(deciding: Deciders, scripted_openai: ScriptedOpenAI):
    story = " ".join(20 * ["Once upon a time there was a pear."])
    scripted_openai.script(story)
    async with session(deciding) as talk:
        turn = await talk.stream("Tell me a story")
    assert len(scripted_openai.requests) == 1
    assert len(turn.chunks) > 3
    assert turn.shown == {turn.packet.messages[-1].id: story}


async def test_an_aborted_stream_falls_back_to_reflex(scripted_chat: BaseChatModel, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(CutOff("It says app"))
    async with session(by_model(scripted_chat)) as talk:
        turn = await talk.stream()
    (broken, begun), (written, answer) = turn.shown.items()
    assert begun == "It says "
    assert (written, answer) == (turn.packet.messages[-1].id, turn.packet.messages[-1].text)
    assert broken != written
    assert len(turn.packet.messages) == 2
    assert [error.stage for error in turn.packet.metrics.errors] == ["respond"]


async def test_a_cancelled_turn_cancels_the_models_stream(tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch):
    """The model with random weights would write a thousand tokens."""
    chat = LlamaCppChat(await asyncio.to_thread(LlamaEngine, str(tiny_gguf)))
    submit, answers, begun = chat._engine.submit, [], asyncio.Event()
    told = lambda request: answers.append(submit(request)) or begun.set() or answers[-1]  # noqa: E731
    monkeypatch.setattr(chat._engine, "submit", told)
    async with session(by_model(chat)) as talk:
        given = TurnInput(messages=[HumanMessage("Hello")])

        async def turn() -> None:
            async for _ in talk.graph.astream(given, talk.config, stream_mode="messages"):
                pass

        running = asyncio.create_task(turn())
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    answer = await asyncio.wrap_future(answers[0])
    assert answer.finish_reason == "cancelled"
