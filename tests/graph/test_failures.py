"""A failure is reported, and does not affect other calls and servers."""

import sys

import pytest
from fastmcp.client.transports import StdioTransport
from support.dying_server import dying
from support.graphs import run_once, session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection


def gone(name: str = "gone") -> Connection:
    """Return a server whose program exits at once."""
    return Connection(
        ServerConfig(name, {}), lambda: StdioTransport(sys.executable, ["-c", "raise SystemExit('no key')"])
    )


async def test_a_tools_error_reaches_the_answer_the_ledger_and_the_data_fields(notebook: Notebook):
    packet = await run_once(scripted(call("notebook.check_weather", city="Bern")), "Weather in Bern?", notebook)
    error = "the weather station burned down"
    (field,) = packet.content.data_fields
    assert field.value["success"] is False  # type: ignore[index, call-overload]
    assert field.value["output"] is None  # type: ignore[index, call-overload]
    assert error in field.value["error"]  # type: ignore[index, call-overload, operator]
    assert "notebook.check_weather has no result: it is failed." in packet.reasoning.sketchpad[0].content
    assert error in packet.context.result_ledger[0].summary
    assert error in packet.response.candidate
    assert "failed" in packet.response.candidate
    assert packet.routing.execution_result is not None
    assert not packet.routing.execution_result.success


async def test_a_dead_server_is_named_and_the_others_answer(notebook: Notebook):
    packet = await run_once(scripted(call("notebook.read_note", name="a")), "Read a", notebook, gone())
    assert "apples" in packet.response.candidate
    assert "Some servers are not available: gone: " in packet.response.candidate
    health = {one.name: one.state for one in packet.context.servers}
    assert health == {"gone": "failed", "notebook": "ready"}
    assert packet.metrics.errors[0].stage == "build_palette"
    assert packet.metrics.errors[0].message.startswith("gone: ")


@pytest.mark.slow
async def test_a_server_that_dies_during_a_call_does_not_affect_others(notebook: Notebook, tmp_path):
    both = calls(wanted("mail.send_mail", text="Dear all"), wanted("notebook.read_note", name="a"))
    deciders = scripted(both, call("notebook.read_note", name="b"))
    async with session(deciders, notebook, dying(tmp_path / "sent"), allow_write_tools=True) as talk:
        await talk.ask("Send a mail saying Dear all, and read a, then b")
        packet = await talk.reply("yes")
    assert [one.status.value for one in packet.routing.all_calls] == ["unknown", "executed", "executed"]
    assert "bread" in packet.response.candidate
    assert "it is not known whether it finished" in packet.response.candidate
