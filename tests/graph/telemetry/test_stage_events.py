"""Each stage reports its decisions, changes and cost on the custom stream."""

import orjson
from langgraph.types import Command
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import calls, scripted, wanted
from support.stage_events import events_of, finished, started, stopped

from packetgate.deciders.choosing import reflex_deciders
from packetgate.state.events import read_event

READ = "notebook.read_note"
WRITE = "notebook.write_note"


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


async def test_the_events_of_a_read_name_its_changes(notebook: Notebook):
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


async def test_a_question_stops_the_stage_and_the_reply_finishes_it(notebook: Notebook):
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
