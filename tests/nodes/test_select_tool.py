"""Selection uses tools as their server listed them at its last start."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from langgraph.runtime import Runtime
from support.packets import packet
from support.scripted_deciders import call

from packetgate.deciders.protocols import Selection
from packetgate.nodes.select_tool import select_tool
from packetgate.state.context import RoutingContext
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.remembered import ListMemory

CLOSED = {"readOnlyHint": True, "openWorldHint": False}


def hub(folder: Path, may_start: asyncio.Event, annotations: dict[str, bool]) -> McpHub:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await may_start.wait()
        yield

    server: FastMCP[None] = FastMCP("note", lifespan=lifespan)

    @server.tool(annotations=annotations)
    def look_up(term: str) -> str:
        """Look up a term."""
        return term

    entry, memory = ServerConfig("note", {"trusted": True}), ListMemory(folder)
    return McpHub([Connection(entry, lambda: FastMCPTransport(server), memory=memory)])


async def list_closed(folder: Path) -> None:
    """Let the server list its closed tool, which the folder stores."""
    started = asyncio.Event()
    started.set()
    async with hub(folder, started, CLOSED) as first:
        await first.catalogue(wait_for_all=True)


@pytest.mark.parametrize(
    ("hints", "outcome"),
    [(CLOSED, "call"), ({**CLOSED, "openWorldHint": True}, "miss"), ({**CLOSED, "readOnlyHint": False}, "miss")],
)
async def test_a_tool_that_its_started_server_defines_otherwise_is_selected_again(
    hints: dict[str, bool], outcome: str, tmp_path: Path
) -> None:
    await list_closed(tmp_path)
    late = asyncio.Event()

    async def select(*_: Any) -> Selection:
        late.set()
        return call("note.look_up", term="tulips")

    async with hub(tmp_path, late, hints) as toolbox:
        catalogue = await toolbox.catalogue()
        assert not catalogue["note.look_up"].reaches_outside
        asked = packet("Look up tulips", catalogue=catalogue)
        runtime: Runtime[RoutingContext] = Runtime(context=RoutingContext())
        update = await select_tool(asked, runtime, decider=select, toolbox=toolbox)
    assert update["tool_routing"]
    assert update["tool_routing"].outcome == outcome


async def test_the_first_catalogue_of_a_process_waits_for_the_server_of_a_call(tmp_path: Path) -> None:
    """This happens after a restart if the first event is the answer to a question."""
    await list_closed(tmp_path)
    late = asyncio.Event()
    async with hub(tmp_path, late, {**CLOSED, "openWorldHint": True}) as toolbox:
        asyncio.get_running_loop().call_later(0.1, late.set)
        catalogue = await toolbox.catalogue(called=["note.look_up"])
    assert catalogue["note.look_up"].reaches_outside
