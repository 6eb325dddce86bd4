"""The proxy forwards progress, cancellation, resources and prompts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.client.transports import FastMCPTransport
from fastmcp.exceptions import PromptError, ResourceError
from mcp import MCPError
from support.mcp_servers import until
from support.proxies import (
    DESK,
    IDE,
    LEGACY,
    TOKENS,
    Protocol,
    Talk,
    gateway_over,
    proxy_client,
    rules,
    served,
    talking,
)

from packetgate.connectors.clients import Clients
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection

LOST = "shelf://library/book/lost"
PAGE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Library:
    """A server with tools, resources and prompts."""

    def __init__(self) -> None:
        self.server = FastMCP("library")
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()

        @self.server.tool
        async def read_slowly(ctx: Context) -> str:
            """Read a book, page after page."""
            for page in (1, 2):
                await ctx.report_progress(page, 2, f"page {page}")
            return "the end"

        @self.server.tool
        async def read_forever() -> str:
            """Read without an end."""
            self.started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
            return ""

        @self.server.resource("shelf://books/list")
        def books() -> str:
            return "One, Two. API_TOKEN=abcdefgh12345678"

        @self.server.resource("shelf://book/{name}")
        def book(name: str) -> str:
            if name == "lost":
                raise ResourceError("lost. API_TOKEN=abcdefgh12345678")
            return f"the book {name}"

        @self.server.prompt
        def review(book: str) -> str:
            """Review a book."""
            if book == "lost":
                raise PromptError("lost. API_TOKEN=abcdefgh12345678")
            return f"Write a review of {book}"


@asynccontextmanager
async def reading(
    library: Library, home: Path, kind: Protocol, token: str = "", config: Clients | None = None
) -> AsyncIterator[Talk]:
    """Connect a client to a proxy in front of the started library."""
    async with gateway_over(library.server, home=home, config=config) as gateway:
        await gateway.hub.catalogue()
        async with (
            served(gateway, TOKENS if token else None) as url,
            talking(gateway, url, kind, token=token) as talk,
        ):
            yield talk


async def test_progress_reaches_the_calling_client(tmp_path: Path) -> None:
    library = Library()
    progress: list[Any] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append((done, total, message))

    async with (
        gateway_over(library.server, home=tmp_path) as gateway,
        served(gateway) as url,
        Client(url, mode="legacy", progress_handler=on_progress) as client,
    ):
        result = await client.call_tool("call_read_tool", {"name": "library.read_slowly"})
    assert result.structured_content["text"] == "the end"
    assert progress == [(1, 2, "page 1"), (2, 2, "page 2")]


async def test_a_cancelled_call_is_cancelled_at_its_server(tmp_path: Path, kind: Protocol) -> None:
    library = Library()
    async with reading(library, tmp_path, kind) as talk:
        call = asyncio.create_task(talk.call("call_read_tool", name="library.read_forever"))
        await asyncio.wait_for(library.started.wait(), 30)
        call.cancel()
        await asyncio.wait_for(library.stopped.wait(), 30)
        assert not (await talk.call("call_read_tool", name="library.read_slowly")).is_error


async def test_names_of_resources_and_prompts_contain_their_server(tmp_path: Path, kind: Protocol) -> None:
    async with reading(Library(), tmp_path, kind) as talk:
        client = talk.client
        assert [str(one.uri) for one in await client.list_resources()] == ["shelf://library/books/list"]
        templates = await client.list_resource_templates()
        assert [one.uri_template for one in templates] == ["shelf://library/book/{name}"]
        assert [one.name for one in await client.list_prompts()] == ["library_review"]
        assert (await client.read_resource("shelf://library/book/emma"))[0].text == "the book emma"
        (books,) = await client.read_resource("shelf://library/books/list")
        assert "One, Two." in books.text
        assert "abcdefgh12345678" not in books.text
        with pytest.raises((MCPError, ResourceError)):
            await client.read_resource("shelf://library/nothing/here")
        prompt = await client.get_prompt("library_review", {"book": "Emma"})
        assert prompt.messages[0].content.text == "Write a review of Emma"
        for request in (client.get_prompt("library_review", {"book": "lost"}), client.read_resource(LOST)):
            with pytest.raises((MCPError, ResourceError), match=r"lost\. API_TOKEN=\[redacted: API_TOKEN\]"):
                await request


async def test_a_client_sees_no_resources_of_forbidden_servers(tmp_path: Path, kind: Protocol) -> None:
    config = Clients.model_validate({"clients": {"ide": {"servers": []}, "desk": {"servers": ["library"]}}})
    library = Library()
    async with reading(library, tmp_path, kind, IDE, config) as ide:
        assert await ide.client.list_resources() == []
        assert await ide.client.list_prompts() == []
        with pytest.raises(MCPError):
            await ide.client.read_resource("shelf://library/book/emma")
        async with talking(ide.gateway, ide.url, kind, token=DESK) as desk:
            assert len(await desk.client.list_resources()) == 1


async def test_a_listed_tool_and_its_servers_messages_are_unchanged(tmp_path: Path, kind: Protocol) -> None:
    server: FastMCP[None] = FastMCP("desk", instructions="First open the desk.\n\nThen read.")
    annotations = {"readOnlyHint": True, "title": "Reading"}

    @server.tool(title="Read a page", annotations=annotations, meta={"a": {"b": [1]}}, output_schema=PAGE)
    async def read(ctx: Context, page: int | None = None) -> dict[str, Any]:
        """Read a page.

        Args: the page.
        """
        await ctx.info("opening", logger_name="desk")
        await ctx.warning("torn")
        return {"text": f"page {page}"}

    @server.tool
    def get_lines(chars: int) -> str:
        """Get many lines."""
        return ("a line\n" * chars)[:chars]

    @server.tool
    def get_rows(count: int) -> list[str]:
        """Get many rows."""
        return [f"row {number}" for number in range(count)]

    logged: list[Any] = []

    async def on_log(message: Any) -> None:
        logged.append((message.level, message.logger, message.data["msg"]))

    allowed, keep = rules("allow", "desk.*"), result_store(Settings(home=tmp_path)).keep
    desk = Connection(ServerConfig("desk", {}), lambda: FastMCPTransport(server), keep=keep)
    async with (
        Client(FastMCPTransport(server)) as direct,
        proxy_client(tmp_path, desk, kind=kind, preferences=allowed, allow_write_tools=True) as talk,
        Client(talk.url, mode=kind, log_handler=on_log) as client,
    ):
        own = {f"desk__{tool.name}": tool.model_dump(exclude={"name"}) for tool in await direct.list_tools()}
        shown = {tool.name: tool.model_dump(exclude={"name"}) for tool in await client.list_tools()}
        assert {name: shown[name] for name in own} == own
        assert direct.instructions
        async with Client(talk.url, mode=LEGACY) as later:
            assert later.instructions
            assert direct.instructions in later.instructions
        await client.call_tool("desk__read", {"page": 2})
        if kind == LEGACY:  # the newer protocol has no log messages
            await until(lambda: len(logged) == 2)
            assert logged == [("info", "desk", "opening"), ("warning", None, "torn")]
            await client.set_logging_level("warning")
            await client.call_tool("desk__read", {"page": 3})
            await until(lambda: len(logged) == 3)
            assert logged[-1] == ("warning", None, "torn")
        lines_result = await talk.call("desk__get_lines", chars=250_000)
        assert (len(lines_result.text), len(lines_result.structured["result"])) == (250_000, 250_000)
        rows = await talk.call("desk__get_rows", count=12_000)
        assert not rows.is_error, rows.text[-300:]
        assert rows.structured["result"][-1] == "row 11999"
        cut = await talk.call("desk__get_lines", chars=400_000)
        assert "400,000 characters in all; read_result" in cut.text


async def test_log_messages_of_one_client_reach_no_other(tmp_path: Path) -> None:
    server: FastMCP[None] = FastMCP("desk")
    both = asyncio.Event()
    waiting: list[str] = []

    @server.tool(annotations={"readOnlyHint": True})
    async def get_mail(ctx: Context, name: str) -> str:
        """Get the mail."""
        waiting.append(name)
        if len(waiting) > 1:
            both.set()
        await both.wait()
        await ctx.info(f"mail of {name}")
        return name

    logged: list[Any] = []

    async def on_log(message: Any) -> None:
        logged.append(message.data["msg"])

    async with (
        proxy_client(tmp_path, server, preferences=rules("allow", "desk.*"), allow_write_tools=True) as talk,
        Client(talk.url, mode=LEGACY, log_handler=on_log) as ann,
        Client(talk.url, mode=LEGACY, log_handler=on_log) as ben,
    ):
        calls = [client.call_tool("desk__get_mail", {"name": name}) for client, name in ((ann, "ann"), (ben, "ben"))]
        await asyncio.gather(*calls)
        await ann.call_tool("desk__get_mail", {"name": "ann"})
        await until(lambda: bool(logged))
    assert logged == ["mail of ann"]
