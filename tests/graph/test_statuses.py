"""Calls without an answer, and the statuses in the checkpoints of a call."""

from pathlib import Path

from support.dying_server import dying
from support.graphs import run_once, session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted

from packetgate.connectors.sessions import SessionState
from packetgate.state.base import ErrorType
from packetgate.state.transitions import ToolExecutionStatus

WRITE = call("notebook.write_note", name="a", text="avocado")


async def test_a_write_whose_server_dies_is_unknown_and_other_calls_run(notebook: Notebook, tmp_path: Path):
    both = calls(wanted("mail.send_mail", text="Dear all"), wanted("notebook.read_note", name="a"))
    async with session(scripted(both), notebook, dying(tmp_path / "sent"), allow_write_tools=True) as talk:
        await talk.ask("Send a mail saying Dear all, and read a")
        packet = await talk.reply("yes")
    assert [one.status.value for one in packet.routing.all_calls] == ["unknown", "executed"]
    assert (tmp_path / "sent").read_text(encoding="utf-8") == "Dear all"
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
