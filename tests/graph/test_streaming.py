"""The stream of a turn: its answer, and an event with the decisions and tokens of each stage."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from support.gguf_model import write_tiny_gguf
from support.graphs import Session, run_once, session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted
from support.scripted_openai import CutOff, ScriptedOpenAI

from packetgate.deciders.choosing import language_deciders, reflex_deciders
from packetgate.deciders.protocols import Answer, Deciders
from packetgate.models.llama.chat import LlamaCppChat
from packetgate.models.llama.engine import LlamaEngine
from packetgate.models.model import Model
from packetgate.models.openai.connect import connect
from packetgate.models.openai.servers import Endpoint
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.events import StageFinished, StageStarted, StageStopped, read_event
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.tools.catalogue.catalogue import Catalogue

LEAK = "The note <think>Which one did they mean...</think>says apples<tool_call>{}</tool_call>, and it is yours."
CLEAN = "The note says apples, and it is yours."

Answering = Callable[[str], Awaitable[BaseChatModel]]


def by_model(chat: BaseChatModel, *, fallback: bool = False) -> Deciders:
    """Return deciders in which only the answer uses the model."""
    model = Model(chat)

    async def source() -> Model:
        return model

    return replace(reflex_deciders(), responder=language_deciders(source, source, fallback=fallback).responder)


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
    """Return deciders with one model, which selects and answers."""
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


async def test_events_have_the_answer_once(deciding: Deciders, scripted_openai: ScriptedOpenAI):
    story = "Once upon a time there was a pear <think>or an apple</think>that sang."
    scripted_openai.script(story)
    async with session(deciding) as talk:
        given: Any = {"messages": [HumanMessage("Tell me a story")]}
        events = [one async for one in talk.graph.astream_events(given, talk.config, version="v2")]
    data = [one["data"] for one in events if one["event"] == "on_chat_model_stream"]
    assert "".join(one["chunk"].text for one in data) == "Once upon a time there was a pear that sang."
    assert [one["event"] for one in events].count("on_chat_model_end") == 1


async def test_an_aborted_stream_falls_back_to_reflex(scripted_chat: BaseChatModel, scripted_openai: ScriptedOpenAI):
    scripted_openai.script(CutOff("It says app"))
    async with session(by_model(scripted_chat, fallback=True)) as talk:
        turn = await talk.stream()
    (broken, begun), (written, answer) = turn.shown.items()
    assert begun == "It says "
    assert (written, answer) == (turn.packet.messages[-1].id, turn.packet.messages[-1].text)
    assert broken != written
    assert len(turn.packet.messages) == 2
    assert [error.stage for error in turn.packet.metrics.errors] == ["respond"]


async def test_a_cancelled_turn_cancels_the_models_stream(tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch):
    """Without the cancellation, the model with random weights writes a thousand tokens."""
    chat = LlamaCppChat(await asyncio.to_thread(LlamaEngine, str(tiny_gguf)))
    submit, answers, begun = chat._engine.submit, [], asyncio.Event()
    watched = lambda request: answers.append(submit(request)) or begun.set() or answers[-1]  # noqa: E731
    monkeypatch.setattr(chat._engine, "submit", watched)
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


READ = "notebook.read_note"
WRITE = "notebook.write_note"


async def events_of(talk: Session, request: str | Command[Any], events: list[Any] | None = None) -> list[Any]:
    """Run or continue a turn up to its answer or question; return its events, and add them to `events`."""
    events = [] if events is None else events
    input_ = TurnInput(messages=[HumanMessage(request)]) if isinstance(request, str) else request
    stream = talk.graph.astream(input_, talk.config, context=talk.context, stream_mode="custom")
    async for event in stream:
        events.append(event)
    return events


def started(events: list[Any]) -> list[StageStarted]:
    """Return the started stages."""
    return [event for event in events if isinstance(event, StageStarted)]


def finished(events: list[Any], stage: str = "") -> list[StageFinished]:
    """Return the finished events of all stages, or of one stage."""
    return [event for event in events if isinstance(event, StageFinished) and stage in {"", event.stage}]


def stopped(events: list[Any]) -> list[StageStopped]:
    """Return the stages that stopped for a question or an error."""
    return [event for event in events if isinstance(event, StageStopped)]


class FailingResponder:
    """Uses tokens and raises an error."""

    async def __call__(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Answer:
        raise DecisionError("bread is no note", TokenUsage(input_tokens=7, output_tokens=1))


async def test_each_stage_starts_and_finishes_once(notebook: Notebook):
    async with session(reflex_deciders(), notebook) as talk:
        events = await events_of(talk, "Read note name=b")
        state = await talk.graph.aget_state(talk.config)
    assert [event.stage for event in events[::2]] == [event.stage for event in events[1::2]]
    assert events[::2] == started(events)
    assert events[1::2] == finished(events)
    assert [entry for event in finished(events) for entry in event.decisions] == [
        *state.values["reasoning"].reflection_log
    ]
    header = state.values["header"]
    assert {(event.session_id, event.packet_id) for event in events[1:]} == {("session", header.packet_id)}
    assert (events[0].session_id, events[0].packet_id) == ("", "")
    for event in events:
        as_a_server_sends_it = orjson.dumps(event, default=lambda model: model.model_dump())
        assert read_event(as_a_server_sends_it) == event


async def test_the_events_of_a_turn_contain_its_decisions_and_tokens(notebook: Notebook):
    usage = TokenUsage(input_tokens=100, output_tokens=9, cached_tokens=1, thought_tokens=2)
    missing = call("notebook.sing").model_copy(update={"usage": usage, "is_fallback": True})
    async with session(scripted(missing, call(READ, name="a")), notebook) as talk:
        events = await events_of(talk, "Read a")
        again = await events_of(talk, "Hello")
    first, second = finished(events, "select_tool")
    assert (first.usage, second.usage) == (usage, TokenUsage())
    assert [[entry.is_fallback for entry in event.decisions] for event in (first, second)] == [[True], [False]]
    assert all(event.duration_ms > 0 for event in finished(events))
    assert [len(event.decisions) for event in finished(again)] == [1] * len(finished(again))


async def test_a_failed_stage_reports_its_error_and_tokens(notebook: Notebook):
    async with session(replace(reflex_deciders(), responder=FailingResponder()), notebook) as talk:
        with pytest.raises(DecisionError):
            await events_of(talk, "Hello", events := [])
    (stop,) = stopped(events)
    assert (stop.stage, stop.reason, stop.error, stop.usage.input_tokens) == ("respond", "error", "DecisionError", 7)


async def test_a_question_stops_the_stage_and_the_reply_finishes_it(notebook: Notebook):
    both = calls(wanted(WRITE, name="a", text="x"), wanted(READ, name="b"))
    async with session(scripted(both), notebook, allow_write_tools=True) as talk:
        events = await events_of(talk, "Write x to a, and read b")
        more = await events_of(talk, Command(resume="yes"))
    (stop,) = stopped(events)
    assert (stop.stage, stop.reason, events[-1]) == ("ask_user", "interrupt", stop)
    assert started(more)[0].stage == "ask_user"
    assert finished(more)[0].stage == "ask_user"
