"""While servers start: nobody waits for a slow server, and changes are announced."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from support.proxies import META, Protocol, other_server, proxy_client

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection

PATIENCE_S = 0.2


class SlowServer:
    """A server that starts when `may_start` is set."""

    def __init__(self) -> None:
        self.starting, self.may_start = asyncio.Event(), asyncio.Event()

        @asynccontextmanager
        async def lifespan(_: Any) -> AsyncIterator[None]:
            self.starting.set()
            await self.may_start.wait()
            yield

        self.server: FastMCP[None] = FastMCP("slow", lifespan=lifespan)
        self.server.tool(lambda: "it ran", name="get_it", description="Get it.", annotations={"readOnlyHint": True})
        self.server.prompt(lambda: "say hello", name="greet")
        self.server.resource("note://a", name="a")(lambda: "the note")

    def connection(self) -> Connection:
        return Connection(ServerConfig("slow", {"trusted": True}), lambda: FastMCPTransport(self.server))


@pytest.fixture
def slow() -> SlowServer:
    return SlowServer()


async def test_lists_do_not_wait_for_a_starting_server(slow: SlowServer, tmp_path: Path, kind: Protocol) -> None:
    servers = (slow.connection(), other_server())
    async with proxy_client(tmp_path / "home", *servers, kind=kind, patience_s=PATIENCE_S) as talk:
        assert await talk.names() == META | {"other__echo"}
        assert await talk.other_answers()
        result = await talk.call("slow__get_it")
        assert result.is_error
        assert "still starting" in result.text


async def test_a_call_waits_for_its_server(slow: SlowServer, tmp_path: Path, kind: Protocol) -> None:
    servers = (slow.connection(), other_server())
    async with proxy_client(tmp_path / "home", *servers, kind=kind, patience_s=PATIENCE_S) as talk:
        assert await talk.names() == META | {"other__echo"}
        call = asyncio.create_task(talk.call("call_read_tool", name="slow__get_it"))
        assert await talk.other_answers()
        assert not call.done()
        slow.may_start.set()
        assert (await call).text == "it ran"


async def test_a_prompt_and_a_resource_wait_for_their_server(slow: SlowServer, tmp_path: Path, kind: Protocol) -> None:
    async with proxy_client(tmp_path, slow.connection(), kind=kind) as talk:
        both = asyncio.gather(talk.client.get_prompt("slow_greet"), talk.client.read_resource("note://slow/a"))
        await slow.starting.wait()
        assert not both.done()
        slow.may_start.set()
        prompt, contents = await both
        assert prompt.messages[0].content.text == "say hello"
        assert "the note" in str(contents)


async def test_a_started_server_is_announced(slow: SlowServer, tmp_path: Path) -> None:
    async with proxy_client(tmp_path, slow.connection(), other_server(), patience_s=PATIENCE_S) as talk:
        assert await talk.names() == META | {"other__echo"}
        slow.may_start.set()
        while "slow__get_it" not in await talk.names():
            await talk.is_told()
            talk.changed.clear()
