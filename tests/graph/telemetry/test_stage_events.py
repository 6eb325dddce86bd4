"""Each stage of a turn says on the custom stream what it decided, changed and cost."""

from typing import Literal

import orjson
import pytest
from langgraph.types import Command
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, clarify, scripted, wanted
from support.stage_events import events_of, finished, started, stopped

from packetgate.deciders.choosing import reflex_deciders
from packetgate.deciders.protocols import Review
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.events import read_event
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue

READ = "notebook.read_note"
WRITE = "notebook.write_note"


class FailingReviewer:
    """Spends tokens, and comes to no review."""

    async def __call__(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
        raise DecisionError("no review", TokenUsage(input_tokens=7, output_tokens=1))


async def test_each_stage_begins_and_ends_once(notebook: Notebook):
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


async def test_what_a_read_by_reflex_changes(notebook: Notebook):
    async with session(reflex_deciders(), notebook) as talk:
        events = await events_of(talk, "Read note name=b")
        again = await events_of(talk, "Hello")
    by_stage = {event.stage: event for event in finished(events)}
    palette = by_stage["build_palette"]
    assert READ in palette.loaded
    assert (palette.added, palette.removed) == (palette.loaded, ())
    assert [event.stage for event in finished(events) if event.loaded or event.used] == [
        "build_palette",
        "execute_tool",
    ]
    assert [(event.stage, event.calls) for event in finished(events) if event.calls] == [
        ("select_tool", {"pending": 1}),
        ("review_selection", {"approved": 1}),
        ("execute_tool", {"executed": 1}),
    ]
    assert by_stage["execute_tool"].used == (READ,)
    assert by_stage["inject_result"].reinjection_count == 1
    assert {event.stage for event in by_stage.values() if event.mode == "default"} == {
        *("open_packet", "build_palette", "execute_tool", "inject_result")
    }
    assert {event.mode for event in by_stage.values()} == {"default", "reflex"}
    assert all(event.duration_ms > 0 for event in finished(events))
    assert finished(again, "open_packet")[0].removed == palette.loaded


async def test_a_miss_widens_the_palette(notebook: Notebook):
    missing = call("notebook.run_command", command="ls")
    async with session(scripted(missing, call("notebook.sing")), notebook, palette_size=1) as talk:
        events = await events_of(talk, "Read note a")
    first, second = finished(events, "select_tool")
    assert (first.missed, second.missed) == (("notebook.run_command",), ("notebook.sing",))
    assert (first.corrections, second.corrections) == (("off_palette",), ("unknown_tool",))
    narrow, wide = finished(events, "build_palette")
    assert "notebook.run_command" in wide.added
    assert set(wide.loaded) == set(narrow.loaded) - set(wide.removed) | set(wide.added)
    assert not set(wide.added) & set(narrow.loaded)


async def test_what_was_mended_is_no_correction(notebook: Notebook):
    async with session(scripted(call("read_note", nam="a")), notebook) as talk:
        events = await events_of(talk, "Read note a")
    (selected,) = finished(events, "select_tool")
    assert (selected.corrections, selected.calls) == ((), {"pending": 1})


async def test_the_same_miss_twice_is_told_twice(notebook: Notebook):
    missing = call("notebook.sing")
    async with session(scripted(missing, missing), notebook) as talk:
        events = await events_of(talk, "Sing a")
    told = [(event.missed, event.corrections) for event in finished(events, "select_tool")]
    assert told == [(("notebook.sing",), ("unknown_tool",))] * 2


async def test_a_question_stops_the_stage_and_the_reply_ends_it(notebook: Notebook):
    both = calls(wanted(WRITE, name="a", text="x"), wanted(READ, name="b"))
    async with session(scripted(both), notebook, allow_write_tools=True) as talk:
        events = await events_of(talk, "Write x to a, and read b")
        more = await events_of(talk, Command(resume="yes"))
    (review,) = finished(events, "review_selection")
    assert (review.escalation, review.escalated) == ("approval", (WRITE,))
    assert review.calls == {"awaiting_approval": 1, "approved": 1}
    (stop,) = stopped(events)
    assert (stop.stage, stop.reason, events[-1]) == ("ask_user", "interrupt", stop)
    assert started(more)[0].stage == "ask_user"
    assert finished(more)[0].calls == {"approved": 1}
    assert {event.escalation for event in finished(more)} == {None}


async def test_a_question_of_the_selection(notebook: Notebook):
    async with session(scripted(clarify("Which note?")), notebook) as talk:
        events = await events_of(talk, "Read a note")
    (selected,) = finished(events, "select_tool")
    assert (selected.escalation, selected.escalated) == ("question", ())


async def test_tokens_and_stand_ins(notebook: Notebook):
    usage = TokenUsage(input_tokens=100, output_tokens=9, cached_tokens=40)
    by_model = call(READ, name="a").model_copy(update={"usage": usage})
    stand_in = call(READ, name="b").model_copy(
        update={"decided_by": "reflex", "is_fallback": True, "fallback_reason": "it timed out", "usage": usage}
    )
    async with session(scripted(by_model, stand_in), notebook) as talk:
        events = await events_of(talk, "Read a, then b")
    first, second = finished(events, "select_tool")
    assert (first.mode, first.is_fallback, first.usage, first.errors) == ("model", False, usage, ())
    assert (second.mode, second.is_fallback, second.usage) == ("reflex", True, usage)
    assert [error.message for error in second.errors] == ["it timed out"]
    others = [event for event in finished(events) if event.stage != "select_tool"]
    assert {event.usage for event in others} == {TokenUsage()}


@pytest.mark.parametrize(
    ("on_low_confidence", "status", "follows"),
    [("skip", "skipped", "respond"), ("ask", "awaiting_confidence", "ask_user")],
)
async def test_a_review_that_breaks(
    notebook: Notebook, on_low_confidence: Literal["ask", "skip"], status: str, follows: str
):
    """It is told of as broken, with what it cost, and then what was decided in its place."""
    deciders = scripted(call(READ, name="a"), reviewer=FailingReviewer())
    spent = TokenUsage(input_tokens=7, output_tokens=1)
    async with session(deciders, notebook, on_low_confidence=on_low_confidence) as talk:
        events = await events_of(talk, "Read a")
        state = await talk.graph.aget_state(talk.config)
    stop, instead = (event for event in events if event.stage == "review_selection" and event not in started(events))
    assert (stop.type, stop.reason, stop.error, stop.usage) == ("stage_stopped", "error", "DecisionError", spent)
    assert (instead.type, instead.calls, instead.usage) == ("stage_finished", {status: 1}, TokenUsage())
    assert (instead.escalation, instead.escalated) == (("confidence", (READ,)) if follows == "ask_user" else (None, ()))
    assert [error.message for error in instead.errors] == ["the review failed: no review"]
    assert instead.decisions[0].confidence == 0.0
    assert started(events)[-1].stage == follows
    assert state.values["metrics"].token_usage["review_selection"] == spent
