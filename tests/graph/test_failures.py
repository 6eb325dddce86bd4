"""Failures of servers, calls and reviews are reported and do not affect other calls. The tests cover every status."""

import sys
from pathlib import Path

import pytest
from fastmcp.client.transports import StdioTransport
from langchain_core.messages import HumanMessage
from langgraph.types import interrupt
from support.graphs import run_once, session
from support.mcp_servers import StdioServer
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted

from packetgate.connectors.sessions import SessionState
from packetgate.deciders.protocols import Review
from packetgate.gate.confidence import CallReview
from packetgate.state.base import ErrorType
from packetgate.state.errors import DecisionError
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection


def dead_server(name: str = "gone") -> Connection:
    """Return a server whose program exits immediately."""
    return Connection(
        ServerConfig(name, {}), lambda: StdioTransport(sys.executable, ["-c", "raise SystemExit('no key')"])
    )


async def test_a_dead_server_is_named_and_the_others_answer(notebook: Notebook):
    packet = await run_once(scripted(call("notebook.read_note", name="a")), "Read a", notebook, dead_server())
    assert "apples" in packet.response.candidate
    assert "Some servers are not available: gone: " in packet.response.candidate
    health = {one.name: one.state for one in packet.context.servers}
    assert health == {"gone": "failed", "notebook": "ready"}
    assert packet.metrics.errors[0].stage == "build_palette"
    assert packet.metrics.errors[0].message.startswith("gone: ")


WRITE = call("notebook.write_note", name="a", text="avocado")


async def test_a_write_whose_server_dies_is_unknown_and_other_calls_run(notebook: Notebook, tmp_path: Path):
    server = StdioServer(tmp_path, "log")
    both = calls(wanted("log.write_line", line="Dear all"), wanted("notebook.read_note", name="a"))
    async with session(scripted(both), notebook, server.connection, allow_write_tools=True) as talk:
        await talk.ask("Write the line Dear all, and read a")
        packet = await talk.reply("yes")
    assert [one.status.value for one in packet.routing.all_calls] == ["unknown", "executed"]
    assert server.written == ["Dear all"]
    assert "it is not known whether it finished" in packet.response.candidate


async def test_a_timed_out_write_is_unknown():
    notebook = Notebook()
    letter = scripted(call("notebook.send_letter", to="Ada", text="Dear Ada"))
    async with session(letter, notebook.connection(timeout_s=0.3), allow_write_tools=True) as talk:
        await talk.ask("Send the letter Dear Ada to Ada")
        packet = await talk.reply("yes")
    assert packet.routing.execution_status is ToolExecutionStatus.UNKNOWN
    assert notebook.called == ["send_letter"]


async def test_a_timed_out_read_is_failed(notebook: Notebook):
    hanging = scripted(call("notebook.fetch_slowly", name="a"))
    packet = await run_once(hanging, "Fetch a", notebook.connection(timeout_s=0.3))
    assert packet.routing.execution_status is ToolExecutionStatus.FAILED
    assert packet.routing.execution_result.error_type is ErrorType.TIMEOUT  # type: ignore[union-attr]
    assert "no answer within 0.3 s" in packet.response.candidate


async def test_checkpoints_contain_every_step_of_a_call(notebook: Notebook):
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        await talk.ask("Write avocado to a")
        await talk.reply("yes")
        history = [SessionState.from_snapshot(one).packet async for one in talk.graph.aget_state_history(talk.config)]
    routings = [packet.tool_routing for packet in reversed(history) if packet.tool_routing]
    seen = dict.fromkeys(routing.calls[0].status.value for routing in routings if routing.calls)
    assert [*seen] == ["pending", "awaiting_approval", "approved", "executed"]
    assert notebook.notes["a"] == "avocado"


READ_A = call("notebook.read_note", name="a")


class _Raising:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def __call__(self, packet, catalogue, context) -> Review:
        raise self._error


class _Interrupting:
    async def __call__(self, packet, catalogue, context) -> Review:
        interrupt({"ask": "a colleague"})
        raise AssertionError


@pytest.mark.parametrize("error", [DecisionError("rubbish"), KeyError("k")])
async def test_an_error_in_the_review_is_recorded(notebook: Notebook, error: Exception):
    packet = await run_once(scripted(READ_A, reviewer=_Raising(error)), "Read a", notebook)
    (failed,) = packet.routing.calls
    assert notebook.calls == []
    assert (failed.review_confidence, failed.status) == (0.0, ToolExecutionStatus.SKIPPED)
    assert failed.selection_confidence == 0.8
    assert str(error) in packet.metrics.errors[0].message
    assert packet.metrics.errors[0].stage == "review_selection"
    assert packet.reasoning.evaluations[0].score == 0.0
    assert "failed" in packet.response.candidate


@pytest.mark.parametrize("stray", [[], ["nobody"]])
async def test_a_call_missing_from_the_review_counts_zero(notebook: Notebook, stray: list[str]):
    """The review covers only the first of two calls, and in one case also a call that does not exist."""

    class Half:
        async def __call__(self, packet, catalogue, context) -> Review:
            first = packet.routing.calls[0].call_id
            reviews = tuple(CallReview(call_id=one, approved=True, confidence=1.0) for one in [first, *stray])
            return Review(reviews=reviews, confidence=1.0, decided_by="model")

    both = calls(wanted("notebook.read_note", name="a"), wanted("notebook.read_note", name="b"))
    packet = await run_once(scripted(both, reviewer=Half()), "Read a and b", notebook)
    assert notebook.calls == [("read_note", {"name": "a"})]
    assert [one.review_confidence for one in packet.routing.calls] == [1.0, 0.0]
    assert [one.status for one in packet.routing.calls] == [ToolExecutionStatus.EXECUTED, ToolExecutionStatus.SKIPPED]
    assert [one.score for one in packet.reasoning.evaluations] == [1.0, 0.0]


async def test_an_interrupt_of_the_reviewer_reaches_the_caller(notebook: Notebook):
    async with session(scripted(READ_A, reviewer=_Interrupting()), notebook) as talk:
        config = {"configurable": {"thread_id": "one"}}
        state = await talk.graph.ainvoke({"messages": [HumanMessage("Read a")]}, config, context=talk.context)
    assert [waiting.value for waiting in state["__interrupt__"]] == [{"ask": "a colleague"}]
    assert notebook.calls == []
