"""Every status of a call is reached, and stored in the checkpoint."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.dying_server import dying
from support.graphs import run_once, session
from support.notebook import Notebook
from support.scripted_deciders import ScriptedReviewer, approving, call, scripted

from packetgate.connectors.sessions import SessionState
from packetgate.connectors.turn import Reply, Say
from packetgate.state.base import ErrorType
from packetgate.state.packet import CognitionPacket
from packetgate.state.transitions import ToolExecutionStatus

READ = call("notebook.read_note", name="a")
WRITE = call("notebook.write_note", name="a", text="avocado")
Scenario = Callable[[Notebook, Path], Awaitable[CognitionPacket]]


async def pending(notebook: Notebook, tmp_path: Path) -> CognitionPacket:
    """Stop the turn between selection and review."""
    async with session(scripted(READ), notebook, interrupt_before=["review_selection"]) as talk:
        return await talk.until_stopped(Say("Read a"))


async def awaiting_confidence(notebook: Notebook, tmp_path: Path) -> CognitionPacket:
    unsure = ScriptedReviewer(approving(0.5))
    async with session(scripted(READ, reviewer=unsure), notebook) as talk:
        return (await talk.ask("Read a")).packet


async def awaiting_approval(notebook: Notebook, tmp_path: Path) -> CognitionPacket:
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        return (await talk.ask("Write avocado to a")).packet


async def approved(notebook: Notebook, tmp_path: Path) -> CognitionPacket:
    """Stop the turn between approval and call."""
    async with session(scripted(WRITE), notebook, interrupt_before=["execute_tool"], allow_write_tools=True) as talk:
        await talk.ask("Write avocado to a")
        return await talk.until_stopped(Reply("yes"))


async def executed(notebook: Notebook, tmp_path: Path) -> CognitionPacket:
    return await run_once(scripted(READ), "Read a", notebook)


async def failed(notebook: Notebook, tmp_path: Path) -> CognitionPacket:
    return await run_once(scripted(call("notebook.check_weather", city="Bern")), "Check Bern", notebook)


async def skipped(notebook: Notebook, tmp_path: Path) -> CognitionPacket:
    return await run_once(scripted(READ, reviewer=ScriptedReviewer(approving(0.1))), "Read a", notebook)


async def user_denied(notebook: Notebook, tmp_path: Path) -> CognitionPacket:
    async with session(scripted(WRITE), notebook, allow_write_tools=True) as talk:
        await talk.ask("Write avocado to a")
        return await talk.reply("no")


async def unknown(notebook: Notebook, tmp_path: Path) -> CognitionPacket:
    """Kill the server during the call."""
    send = scripted(call("mail.send_mail", text="Dear all"))
    async with session(send, dying(tmp_path / "sent"), allow_write_tools=True) as talk:
        await talk.ask("Send a mail saying Dear all")
        packet = await talk.reply("yes")
    assert (tmp_path / "sent").read_text(encoding="utf-8") == "Dear all"
    return packet


SCENARIOS: dict[str, Scenario] = {
    one.__name__: one
    for one in (
        *(pending, awaiting_confidence, awaiting_approval, approved, executed, failed, skipped, user_denied, unknown),
    )
}
CALLED = {
    ToolExecutionStatus.EXECUTED: ["read_note"],
    ToolExecutionStatus.FAILED: ["check_weather"],
}


@pytest.mark.parametrize("status", ToolExecutionStatus)
async def test_each_status_is_reached(status: ToolExecutionStatus, notebook: Notebook, tmp_path: Path):
    packet = await SCENARIOS[status.value](notebook, tmp_path)
    assert packet.routing.execution_status is status
    assert packet.routing.all_calls[0].status is status
    assert notebook.called == CALLED.get(status, [])
    assert notebook.notes["a"] == "apples"
    done = {ToolExecutionStatus.EXECUTED: ("notebook.read_note",)}
    assert packet.context.recent_tools == done.get(status, ())


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
