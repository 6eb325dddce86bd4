"""The hub over servers in this process, and over HTTP: lists, calls, and independence of servers."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest
from fastmcp import FastMCP
from support.mcp_servers import echoing, in_process, serving

from packetgate.state.codes import Code
from packetgate.state.errors import CallRefusedError, LostCallError
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection


async def test_tools_of_all_servers_have_canonical_names():
    async with McpHub([in_process(one) for one in (echoing("b"), FastMCP("c"), echoing("a"))]) as hub:
        assert list(hub.last_catalogue) == []
        catalogue = await hub.catalogue()
        assert await hub.catalogue() is catalogue
        assert list(catalogue) == list(hub.last_catalogue) == ["a.echo", "b.echo"]
        assert [(one.name, one.state, one.tools, one.problem) for one in hub.health()] == [
            ("a", "ready", 1, ""),
            ("b", "ready", 1, ""),
            ("c", "ready", 0, "the server offers no tools"),
        ]
        assert (await hub.call("a.echo", {"text": "x"})).output == "a says x"
        assert (await hub.call("b.echo", {"text": "x"})).output == "b says x"


@pytest.mark.parametrize("name", ["echo", "b.echo"])
async def test_only_canonical_names_are_called(name: str):
    async with McpHub([in_process(echoing("a"))]) as hub:
        await hub.catalogue()
        with pytest.raises(CallRefusedError, match=repr(name)):
            await hub.call(name, {"text": "x"})


@pytest.mark.parametrize("names", ["aa", "ab"])
async def test_calls_to_one_or_two_servers_overlap(names: str):
    met = asyncio.Barrier(2)

    def meeting(name: str) -> FastMCP[None]:
        server: FastMCP[None] = FastMCP(name)

        @server.tool
        async def get_met() -> str:
            """Return when the other call is there too."""
            await met.wait()
            return "met"

        return server

    async with McpHub([in_process(meeting(name)) for name in dict.fromkeys(names)]) as hub:
        await hub.catalogue()
        async with asyncio.timeout(60):
            results = await asyncio.gather(*(hub.call(f"{name}.get_met", {}) for name in names))
        assert [result.output for result in results] == ["met", "met"]


async def test_an_error_of_the_tool_is_a_failed_result():
    async with McpHub([in_process(echoing("a"))]) as hub:
        await hub.catalogue()
        wrong = await hub.call("a.echo", {"words": "x"})
        assert not wrong.success
        assert "text" in (wrong.error or "")
        assert hub.health()[0].state == "ready"


@pytest.mark.parametrize("risk", ["get", "set"])
async def test_a_timed_out_call_is_lost_and_not_sent_again(risk: str):
    server, never = echoing("a"), asyncio.Event()
    asked: list[str] = []

    async def wait_for_it() -> str:
        """Wait for what never comes."""
        asked.append(risk)
        await never.wait()
        return "never"

    server.tool(wait_for_it, name=f"{risk}_it")
    async with McpHub([in_process(server, timeout_s=1.0)]) as hub:
        await hub.catalogue()
        with pytest.raises(LostCallError, match="'a'") as caught:
            await hub.call(f"a.{risk}_it", {})
        assert caught.value.code is Code.CALL_TIMED_OUT
        assert asked == [risk]
        assert (await hub.call("a.echo", {"text": "still here"})).output == "a says still here"


@pytest.mark.parametrize(
    ("transport", "path", "entry"),
    [
        ("http", "/mcp", {}),
        ("http", "/mcp", {"transport": "http"}),
        ("sse", "/mcp", {"transport": "sse"}),
        ("sse", "/sse", {}),
    ],
)
async def test_a_server_is_reached(tmp_path: Path, transport: Literal["http", "sse"], path: str, entry: dict[str, str]):
    async with serving(echoing("far").http_app(path=path, transport=transport)) as address:
        far = new_connection(ServerConfig("far", {"url": f"{address}{path}", **entry}), tmp_path)
        async with McpHub([far], patience_s=20) as hub:
            assert "far.echo" in await hub.catalogue(), far.problem
            assert (await hub.call("far.echo", {"text": "hi"})).output == "far says hi"
