"""While servers start: nobody waits for a slow server, its stored tools are listed, and changes are announced."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from support.proxies import META, ClientKind, notified, other_server, proxy_client

from packetgate.tools.servers.connection import Connection
from packetgate.tools.servers.stored_listings import StoredListings

PATIENCE_S = 0.2


class SlowServer:
    """A server that starts when `may_start` is set."""

    def __init__(self, folder: Path) -> None:
        self.listings = folder / "listings"
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
        listings = StoredListings(self.listings)
        return Connection("slow", lambda: FastMCPTransport(self.server), trusted=True, listings=listings)

    async def store_listing(self, home: Path) -> Path:
        """Run the server once, and return the file with its stored tools."""
        self.may_start.set()
        async with proxy_client(home, self.connection()) as talk:
            assert "slow__get_it" in await talk.names()
        self.may_start.clear()
        (file,) = self.listings.iterdir()
        return file


@pytest.fixture
def slow(tmp_path: Path) -> SlowServer:
    return SlowServer(tmp_path)


async def test_lists_do_not_wait_for_a_starting_server(slow: SlowServer, tmp_path: Path, kind: ClientKind) -> None:
    servers = (slow.connection(), other_server())
    async with proxy_client(tmp_path / "home", *servers, kind=kind, patience_s=PATIENCE_S) as talk:
        assert await talk.names() == META | {"other__echo"}
        assert await talk.other_answers()
        result = await talk.call("slow__get_it")
        assert result.is_error
        assert "still starting" in result.text


async def test_a_call_waits_for_a_server_whose_stored_tools_are_listed(
    slow: SlowServer, tmp_path: Path, kind: ClientKind
) -> None:
    await slow.store_listing(tmp_path / "home")
    async with proxy_client(tmp_path / "home", slow.connection(), other_server(), kind=kind) as talk:
        assert await talk.names() == META | {"slow__get_it", "other__echo"}
        call = asyncio.create_task(talk.call("call_read_tool", name="slow__get_it"))
        assert await talk.other_answers()
        assert not call.done()
        slow.may_start.set()
        assert (await call).text == "it ran"


async def test_a_prompt_and_a_resource_wait_for_their_server(
    slow: SlowServer, tmp_path: Path, kind: ClientKind
) -> None:
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
            await notified(talk.changed)
            talk.changed.clear()


async def test_a_broken_stored_list_is_ignored(slow: SlowServer, tmp_path: Path) -> None:
    file = await slow.store_listing(tmp_path)
    for content in ("", "{", "[]", '{"version": 1}', "null"):
        file.write_text(content)
        async with proxy_client(tmp_path, slow.connection(), other_server(), patience_s=PATIENCE_S) as talk:
            assert await talk.names() == META | {"other__echo"}


async def test_a_forged_stored_tool_is_listed_and_never_called(slow: SlowServer, tmp_path: Path) -> None:
    file = await slow.store_listing(tmp_path)
    forged = {"name": "get_nothing", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    file.write_text(json.dumps({**json.loads(file.read_text()), "tools": [forged]}))
    async with proxy_client(tmp_path, slow.connection(), patience_s=PATIENCE_S) as talk:
        assert "slow__get_nothing" in await talk.names()
        slow.may_start.set()
        result = await talk.call("call_read_tool", name="slow__get_nothing")
        assert result.is_error
        assert "unknown tool" in result.text
