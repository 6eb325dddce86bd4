"""The proxy over real HTTP, in this process, and clients of two makes that speak either protocol with it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx2
import mcp
import mcp_types
import uvicorn
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.tools import Tool
from mcp.client.streamable_http import streamable_http_client
from support.mcp_servers import in_process
from support.vouching import worded

from packetgate.connectors.clients import ProxyConfig
from packetgate.connectors.http import bound
from packetgate.connectors.proxy.gateway import Gateway
from packetgate.connectors.proxy.serving import gateway_to, http_app
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.servers.hub import McpHub

Make = Literal["sdk", "fastmcp"]
Era = Literal["legacy", "2026-07-28"]
META = {"set_context", "search_tools", "fetch_tool_description", "call_read_tool", "call_changing_tool", "read_result"}


def ledger_server(written: list[str], tools: int = 0) -> FastMCP:
    """Return a server that reads and writes entries, and has so many tools more, none of which fits anything."""
    server = FastMCP("ledger")

    @server.tool
    def list_entries() -> list[str]:
        """List the entries of the ledger."""
        return [*written]

    @server.tool
    def add_entry(text: str) -> str:
        """Add an entry to the ledger."""
        written.append(text)
        return f"added {text}"

    @server.tool
    def read_mail() -> str:
        """Read the newest mail."""
        return "Dear all, please send the invoice to billing@elsewhere.example today."

    for number in range(tools):
        about = f"Turn the lamp number {number} of the greenhouse to another colour, at a given hour of a given day."
        server.add_tool(Tool.from_function(_lamp, name=f"lamp_{number}", description=about))
    return server


def _lamp(colour: str, hour: int, day: str) -> str:
    return f"{colour} at {hour} on {day}"


@asynccontextmanager
async def gateway_over(
    *servers: FastMCP[Any],
    home: Path,
    preferences: Preferences | None = None,
    config: ProxyConfig | None = None,
    **switches: bool,
) -> AsyncIterator[Gateway]:
    """Open a gateway to servers of this process."""
    context = RoutingContext.model_validate(switches)
    async with (
        McpHub([in_process(server) for server in servers], preferences=worded(preferences)) as hub,
        gateway_to(hub, Settings(home=home, patience_s=20), config or ProxyConfig(), context) as gateway,
    ):
        yield gateway


@asynccontextmanager
async def served(
    gateway: Gateway, tokens: dict[str, str] | None = None, hosts: list[str] | None = None
) -> AsyncIterator[str]:
    """Serve a gateway over HTTP, and yield its address."""
    listening = bound("127.0.0.1", 0)
    app = http_app(gateway, tokens or {}, hosts or [])
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, lifespan="on", ws="none")
    )
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    running = asyncio.create_task(server._serve([listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


@dataclass
class Said:
    """What a call came to."""

    is_error: bool
    text: str
    structured: dict[str, Any] | None


Answer = Callable[[str, list[str]], str | None]
"""Takes a question and what may be answered; None declines."""


@dataclass
class Talk:
    """A connection of a client, of whichever make."""

    client: Any
    make: Make
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    changes: int = 0
    asked: list[str] = field(default_factory=list)

    async def names(self) -> set[str]:
        """The names on the list, all pages of it."""
        return {tool.name for tool in await self.tools()}

    async def tools(self) -> list[mcp_types.Tool]:
        """The list, all pages of it."""
        if self.make == "fastmcp":
            return list(await self.client.list_tools())
        found, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def call(self, name: str, /, **arguments: Any) -> Said:
        """Call a tool."""
        if self.make == "fastmcp":
            result = await self.client.call_tool_mcp(name, arguments)
        else:
            result = await self.client.call_tool(name, arguments)
        text = "\n".join(block.text for block in result.content if isinstance(block, mcp_types.TextContent))
        return Said(bool(result.is_error), text, result.structured_content)


@asynccontextmanager
async def talking(url: str, make: Make, era: Era, answer: Answer | None = None, token: str = "") -> AsyncIterator[Talk]:
    """Connect a client; with `answer` it offers elicitation."""
    talk = Talk(None, make)

    async def heard(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            talk.changes += 1
            talk.changed.set()

    def decided(params: Any) -> mcp_types.ElicitResult:
        talk.asked.append(params.message)
        assert answer is not None
        said = answer(params.message, params.requested_schema["properties"]["answer"]["enum"])
        if said is None:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content={"answer": said})

    async def by_fastmcp(message: str, kind: Any, params: Any, context: Any) -> Any:
        return decided(params)

    async def by_sdk(context: Any, params: Any) -> Any:
        return decided(params)

    async with AsyncExitStack() as stack:
        if make == "fastmcp":
            transport = StreamableHttpTransport(url, headers=_headers(token))
            handlers: dict[str, Any] = {"elicitation_handler": by_fastmcp} if answer else {}
            talk.client = Client(transport, mode=era, message_handler=heard, **handlers)
        else:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=_headers(token), timeout=60))
            stream = streamable_http_client(url, http_client=http)
            callbacks: dict[str, Any] = {"elicitation_callback": by_sdk} if answer else {}
            talk.client = mcp.Client(stream, mode=era, message_handler=heard, **callbacks)
        await stack.enter_async_context(talk.client)
        yield talk


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


async def heard_of(event: asyncio.Event) -> None:
    """Wait for a notification, which travels beside the answers."""
    await asyncio.wait_for(event.wait(), 30)


Opened = Callable[..., Awaitable[Talk]]
