"""Each stage reports its decisions and cost on the custom stream."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from support.graphs import Session, session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted

from packetgate.deciders.choosing import reflex_deciders
from packetgate.deciders.protocols import Answer
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.events import StageFinished, StageStarted, StageStopped, read_event
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.tools.catalogue.catalogue import Catalogue

READ = "notebook.read_note"
WRITE = "notebook.write_note"


async def events_of(talk: Session, said: str | Command[Any], events: list[Any] | None = None) -> list[Any]:
    """Run a turn, or go on with one, up to its answer or question; return its events, and add them to `events`."""
    events = [] if events is None else events
    given = TurnInput(messages=[HumanMessage(said)]) if isinstance(said, str) else said
    stream = talk.graph.astream(given, talk.config, context=talk.context, stream_mode="custom")
    async for event in stream:
        events.append(event)
    return events


def started(events: list[Any]) -> list[StageStarted]:
    """Return the stages that began."""
    return [event for event in events if isinstance(event, StageStarted)]


def finished(events: list[Any], stage: str = "") -> list[StageFinished]:
    """Return the stages that ended, or one stage's."""
    return [event for event in events if isinstance(event, StageFinished) and stage in {"", event.stage}]


def stopped(events: list[Any]) -> list[StageStopped]:
    """Return the stages that waited for the user or broke."""
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


async def test_the_events_of_a_turn_hold_its_decisions_and_tokens(notebook: Notebook):
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
