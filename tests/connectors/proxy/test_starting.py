"""While servers start, only calls to a slow server wait for it, and the proxy announces changes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from support.mcp_servers import until
from support.proxies import META, Protocol, other_server, proxy_client

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.remembered import ListMemory

PATIENCE_S = 0.2


class SlowServer:
    """A server that starts when `may_start` is set."""

    def __init__(self, name: str = "slow") -> None:
        self.crashes = False
        self.starting, self.may_start = asyncio.Event(), asyncio.Event()

        @asynccontextmanager
        async def lifespan(_: Any) -> AsyncIterator[None]:
            self.starting.set()
            await self.may_start.wait()
            if self.crashes:
                raise OSError("it crashed")
            yield

        self.server: FastMCP[None] = FastMCP(name, lifespan=lifespan)
        self.server.tool(lambda: "it ran", name="get_it", description="Get it.", annotations={"readOnlyHint": True})
        self.server.prompt(lambda: "say hello", name="greet")
        self.server.resource("note://a", name="a")(lambda: "the note")

    def connection(self, home: Path | None = None) -> Connection:
        memory = ListMemory(home / "definitions") if home else None
        entry = ServerConfig("slow", {"trusted": True})
        return Connection(entry, lambda: FastMCPTransport(self.server), memory=memory)


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
            await talk.until_list_changed()
            talk.changed.clear()


async def test_the_first_list_is_immediate_and_changes_once(slow: SlowServer, tmp_path: Path) -> None:
    later = SlowServer("later")
    second = Connection(ServerConfig("later", {}), lambda: FastMCPTransport(later.server))
    async with proxy_client(tmp_path, slow.connection(), second, other_server(), patience_s=None) as talk:
        assert not talk.gateway.list_patience_s
        assert META <= await talk.names() <= META | {"other__echo"}
        await talk.client.list_prompts()
        slow.may_start.set()
        await until(lambda: talk.gateway.hub.starting == ("later",))
        assert talk.notices == []
        later.may_start.set()
        await talk.until_list_changed()
        assert await talk.names() == META | {"other__echo", "slow__get_it", "later__get_it"}
        await until(lambda: len(talk.notices) > 1)
        await talk.client.list_resources()
        assert sorted(talk.notices) == ["notifications/prompts/list_changed", "notifications/tools/list_changed"]


@pytest.mark.parametrize("now", ["same", "changed", "gone", "failed"])
async def test_a_starting_server_has_the_list_of_its_last_start(slow: SlowServer, tmp_path: Path, now: str) -> None:
    slow.may_start.set()
    async with proxy_client(tmp_path, slow.connection(tmp_path)) as talk:
        assert "slow__get_it" in await talk.names()
    again = SlowServer()
    if now == "changed":
        again.server.tool(lambda place: place, name="get_it", description="Get it.", annotations={"readOnlyHint": True})
    elif now == "gone":
        again.server.local_provider.remove_tool("get_it")
    again.crashes = now == "failed"
    async with proxy_client(tmp_path, again.connection(tmp_path), other_server(), patience_s=None) as talk:
        tools = {tool.name: tool for tool in await talk.client.list_tools()}
        assert tools["slow__get_it"].description == "Get it."
        call = asyncio.create_task(talk.call("slow__get_it"))
        await again.starting.wait()
        again.may_start.set()
        result = await call
        if now == "same":
            assert (result.is_error, result.text) == (False, "it ran")
            await talk.other_answers()
            assert talk.notices in ([], ["notifications/tools/list_changed"])
        else:
            assert result.is_error
            assert {"changed": "place (", "gone": "no longer offers it", "failed": "'slow' is not connected"}[
                now
            ] in result.text
        if now == "changed":
            repeated = await talk.call("slow__get_it", place="here")
            assert (repeated.is_error, repeated.text) == (False, "here")
