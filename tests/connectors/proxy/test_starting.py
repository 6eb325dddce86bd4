"""While servers start: nobody waits for a slow one, its stored tools are listed, and what changes is announced."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from support.mcp_servers import StdioServer, in_process, until
from support.proxied_servers import each_client, other, others_answer, proxied
from support.proxies import META, Era, Make, heard_of, talking

from packetgate.tools.servers.connection import Connection
from packetgate.tools.servers.starting import configured
from packetgate.tools.servers.stored_listings import StoredListings

ECHO = {"other__echo"}


class Slow:
    """A server of a process of its own that answers nothing until it may start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = StdioServer(folder, "slow", waits=True)
        self.listings = StoredListings(folder / "listings")

    def connection(self) -> Connection:
        """Return a connection to a new process of it."""
        return configured(self.server.config, self.folder / "logs", listings=self.listings)

    async def has_run(self) -> set[str]:
        """Let it run once; return its tools as they are listed."""
        self.server.let_start()
        async with proxied(self.folder / "home", self.connection()) as (_, url), talking(url, "sdk", "legacy") as talk:
            names = await talk.names() - META
        (self.server.folder / "may_start").unlink()
        return names


@pytest.fixture
def slow(tmp_path: Path) -> Slow:
    return Slow(tmp_path)


@each_client
async def test_nobody_waits_for_a_server_that_starts(slow: Slow, make: Make, era: Era) -> None:
    async with (
        proxied(slow.folder / "home", slow.connection(), other(), patience_s=0.2) as (_, url),
        talking(url, make, era) as talk,
    ):
        assert await talk.names() - META <= ECHO
        assert await others_answer(talk)
        assert {tool["name"] for tool in (await talk.call("search_tools", query="echo")).structured["tools"]} == ECHO
        said = await talk.call("slow__get_pid")
        assert said.is_error
        assert "still starting" in said.text


@each_client
async def test_its_stored_tools_are_listed_and_a_call_waits_for_it(slow: Slow, make: Make, era: Era) -> None:
    stored = await slow.has_run()
    assert stored
    async with (
        proxied(slow.folder / "home", slow.connection(), other(), patience_s=0.2) as (gateway, url),
        talking(url, make, era) as talk,
    ):
        assert await talk.names() - META == stored | ECHO
        assert await others_answer(talk)
        call = asyncio.create_task(talk.call("call_read_tool", name="slow__get_pid"))
        await until(lambda: len(slow.server.pids) == 2)
        assert not call.done()
        slow.server.let_start()
        assert (await call).text == str(slow.server.pids[-1])
        assert gateway.chain.hub.known.keys() >= {"slow.get_pid", "other.echo"}


@each_client
async def test_a_prompt_and_a_resource_wait_for_their_server(tmp_path: Path, make: Make, era: Era) -> None:
    begun, may_start = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def starting(_: Any) -> AsyncIterator[None]:
        begun.set()
        await may_start.wait()
        yield

    server: FastMCP[None] = FastMCP("shelf", lifespan=starting)
    server.prompt(lambda: "say hello", name="greet")
    server.resource("note://a", name="a")(lambda: "the note")
    async with proxied(tmp_path, in_process(server), patience_s=0.2) as (_, url), talking(url, make, era) as talk:
        asked = asyncio.gather(talk.client.get_prompt("shelf__greet"), talk.client.read_resource("note://shelf/a"))
        await begun.wait()
        assert not asked.done()
        may_start.set()
        prompt, contents = await asked
        assert prompt.messages[0].content.text == "say hello"
        assert "the note" in str(contents)


async def test_a_server_that_has_started_is_announced(slow: Slow, make: Make) -> None:
    async with (
        proxied(slow.folder / "home", slow.connection(), other(), patience_s=0.2) as (_, url),
        talking(url, make, "legacy") as talk,
    ):
        assert await talk.names() - META <= ECHO
        await others_answer(talk)
        slow.server.let_start()
        while "slow__get_pid" not in await talk.names():
            await heard_of(talk.changed)
            talk.changed.clear()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', "null"])
async def test_a_stored_list_that_cannot_be_read_is_not_used(slow: Slow, content: str) -> None:
    await slow.has_run()
    (file,) = (slow.folder / "listings").iterdir()
    file.write_text(content)
    async with (
        proxied(slow.folder / "home", slow.connection(), other(), patience_s=0.2) as (_, url),
        talking(url, "sdk", "legacy") as talk,
    ):
        assert await talk.names() - META <= ECHO


async def test_what_is_stored_is_listed_and_never_called(slow: Slow) -> None:
    """A stored definition may be forged: a call goes by what the server lists now."""
    await slow.has_run()
    (file,) = (slow.folder / "listings").iterdir()
    stored = json.loads(file.read_text())
    forged = {"name": "get_nothing", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    file.write_text(json.dumps({**stored, "tools": [forged]}))
    async with (
        proxied(slow.folder / "home", slow.connection(), other(), patience_s=0.2) as (_, url),
        talking(url, "sdk", "legacy") as talk,
    ):
        assert "slow__get_nothing" in await talk.names()
        slow.server.let_start()
        said = await talk.call("call_read_tool", name="slow__get_nothing")
        assert said.is_error
        assert "no tool" in said.text
