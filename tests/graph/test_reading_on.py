"""The rest of a long result can be read in its own session only."""

from pathlib import Path

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from support.graphs import session
from support.scripted_deciders import call, scripted

from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.text import result_store
from packetgate.tools.text.result_store import ResultStore
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.opening import builtin_servers
from packetgate.toolsets.servers.server import Server

LINES = [f"verse {number}" for number in range(5_000)]
HANDLE = "kept:00ff"


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """A server with a long poem, and the built-in tools."""
    monkeypatch.setattr(result_store, "token_hex", lambda _: HANDLE.removeprefix(result_store.HANDLE_PREFIX))
    (tmp_path / "plan.txt").write_text("the plan")
    poems: FastMCP[None] = FastMCP("poems")

    @poems.tool
    def get_epic() -> str:
        """Get the epic."""
        return "\n".join(LINES)

    kept = ResultStore(tmp_path / "kept")
    far = Connection(ServerConfig("poems", {"trusted": True}), lambda: FastMCPTransport(poems), keep=kept.keep)
    return [far, *builtin_servers(tmp_path, kept=kept).values()]


EPIC, READ_ON = call("poems.get_epic"), call("ai.read", path=HANDLE, first_line=4_000, head=2)


async def test_a_later_step_reads_the_rest(servers: list[Server]):
    async with session(scripted(EPIC, READ_ON), *servers) as talk:
        packet = await talk.say("Get the epic")
    first, second = packet.routing.all_calls
    assert (first.result.handle, first.result.truncated) == (HANDLE, False)
    assert (
        second.result.output
        == "verse 3999\nverse 4000\n[lines 4000 to 4001 of 5,000 lines in kept:00ff; read on with first_line=4002]"
    )
    assert packet.response.candidate.endswith("[poems.get_epic: the full result can be read as kept:00ff]")
    assert "ai.read" in packet.context.palette_names


async def test_the_reader_tool_reads_nothing_else(servers: list[Server]):
    async with session(scripted(EPIC, call("ai.read", path="plan.txt")), *servers, palette_size=1) as talk:
        packet = await talk.say("Get the epic")
    assert "can read only stored results" in packet.routing.all_calls[1].review_reasoning


async def test_another_session_cannot_read_the_rest(servers: list[Server]):
    async with session(scripted(EPIC, READ_ON), *servers, max_reinjections=1) as talk:
        await talk.say("Get the epic")
        talk.name = "two"
        packet = await talk.say(f"Read {HANDLE}")
    assert packet.routing.all_calls[0].status is ToolExecutionStatus.FAILED
    assert HANDLE in packet.routing.all_calls[0].result.error
