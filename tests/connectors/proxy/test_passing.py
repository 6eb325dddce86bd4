"""The proxy forwards progress, cancellation, resources and prompts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ResourceError
from mcp import MCPError
from support.proxies import DESK, IDE, TOKENS, Protocol, Talk, gateway_over, served, talking

from packetgate.connectors.clients import ProxyConfig


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
            return f"the book {name}"

        @self.server.prompt
        def review(book: str) -> str:
            """Review a book."""
            return f"Write a review of {book}"


@asynccontextmanager
async def reading(
    library: Library, home: Path, kind: Protocol, token: str = "", config: ProxyConfig | None = None
) -> AsyncIterator[Talk]:
    """Connect a client to a proxy of the library, once it has started."""
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


async def test_a_client_sees_no_resources_of_forbidden_servers(tmp_path: Path, kind: Protocol) -> None:
    config = ProxyConfig.model_validate({"clients": {"ide": {"servers": []}, "desk": {"servers": ["library"]}}})
    library = Library()
    async with reading(library, tmp_path, kind, IDE, config) as ide:
        assert await ide.client.list_resources() == []
        assert await ide.client.list_prompts() == []
        with pytest.raises(MCPError):
            await ide.client.read_resource("shelf://library/book/emma")
        async with talking(ide.gateway, ide.url, kind, token=DESK) as desk:
            assert len(await desk.client.list_resources()) == 1
