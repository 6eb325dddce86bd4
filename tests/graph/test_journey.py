"""A complete turn without a model: from the request to an answer from the tool's text."""

from support.graphs import session, stages
from support.notebook import Notebook
from support.origins import words

from packetgate.connectors.turn import Asked, Finished, Say
from packetgate.deciders.choosing import reflex_deciders
from packetgate.state.sections import Access, PacketState, SystemTask
from packetgate.state.transitions import ToolExecutionStatus


async def test_a_read_runs_and_is_answered(notebook: Notebook):
    async with session(reflex_deciders(), notebook) as talk:
        events = await talk.events(Say("Read note name=b"))
    last = events[-1]
    assert isinstance(last, Finished)
    packet = last.packet
    assert stages(events) == [
        *("open_packet", "detect_intent", "build_palette", "select_tool", "review_selection", "execute_tool"),
        *("inject_result", "detect_intent", "respond"),
    ]
    assert packet.response.candidate == "notebook.read_note (name=b):\nbread"
    assert packet.status.state is PacketState.COMPLETED
    (call,) = packet.routing.all_calls
    assert (call.status, words(call.provenance)) == (ToolExecutionStatus.EXECUTED, {"name": "user"})
    assert call.review_confidence >= 0.7
    assert packet.routing.selected_tool == "notebook.read_note"
    assert packet.intent.access is Access.READ
    assert packet.intent.system_task is SystemTask.GENERATE_DRAFT
    assert set(packet.metrics.latency_ms) == set(stages(events))
    decided = {entry.step for entry in packet.reasoning.reflection_log if entry.decided_by == "reflex"}
    assert decided == {"detect_intent", "select_tool", "review_selection", "respond"}


async def test_an_enabled_write_is_asked_about(notebook: Notebook):
    async with session(reflex_deciders(), notebook, allow_write_tools=True) as talk:
        events = await talk.events(Say("Write note name=b text=butter"))
        assert isinstance(events[-1], Asked)
        assert notebook.notes["b"] == "bread"
        packet = await talk.reply("yes")
    assert notebook.notes["b"] == "butter"
    assert packet.routing.execution_status is ToolExecutionStatus.EXECUTED


async def test_a_request_without_a_matching_tool_is_answered(notebook: Notebook):
    async with session(reflex_deciders(), notebook) as talk:
        packet = await talk.say("What is the meaning of life?")
    assert packet.tool_routing is None
    assert notebook.calls == []


async def test_two_sessions_do_not_mix(notebook: Notebook):
    async with session(reflex_deciders(), notebook) as talk:
        await talk.say("Read note name=b")
        talk.name = "another"
        packet = await talk.say("List notes")
    assert packet.header.session_id == "another"
    assert packet.header.parent_packet_id is None
    assert packet.context.recent_tools == ("notebook.list_notes",)
    assert len(packet.messages) == 2
