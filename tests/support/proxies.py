"""The proxy over HTTP in this process, and clients of two libraries with both protocols."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import Any, Literal

import httpx2
import mcp
import mcp_types
import uvicorn
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from mcp.client.streamable_http import streamable_http_client
from support.confirmed_reads import confirming_preferences
from support.mcp_servers import RawTool, echoing, in_process

from packetgate.connectors.clients import ProxyConfig
from packetgate.connectors.http import bind_socket
from packetgate.connectors.proxy.gateway import Gateway
from packetgate.connectors.proxy.serving import http_app, open_gateway_to_hub
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.tools.catalogue.preferences import Policy, Preferences
from packetgate.tools.policy.rules import Rule
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.hub import McpHub

Library = Literal["sdk", "fastmcp"]
Protocol = Literal["legacy", "2026-07-28"]
META = {"set_context", "search_tools", "fetch_tool_description", "call_read_tool", "call_changing_tool", "read_result"}
HIDDEN = ("\x1b", "\x07", "\u202e")
"""Characters that control a terminal or reverse text."""

Answer = Callable[[str, list[str]], str | Awaitable[str | None] | None]
"""Takes a question and the offered answers, and returns an answer; None declines."""


@dataclass(frozen=True)
class ClientKind:
    """The library and the protocol of a client."""

    library: Library
    protocol: Protocol

    def __str__(self) -> str:
        return f"{self.library}-{self.protocol}"


LEGACY, MODERN = ClientKind("sdk", "legacy"), ClientKind("sdk", "2026-07-28")


def ledger_server(written: list[str], tools: int = 0) -> FastMCP:
    """Return a server that reads and writes entries, with `tools` more tools that fit no request."""
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


class RecordingTool(RawTool):
    """A tool that appends its name to `ran`."""

    ran: Any
    result: Any = "done"

    async def run(self, arguments: dict[str, Any]) -> Any:
        self.ran.append(self.name)
        return self.result if isinstance(self.result, ToolResult) else self.convert_result(self.result)


def other_server() -> FastMCP:
    """Return a server beside the tested one, for `other_answers`."""
    return echoing("other")


def rules(effect: str, tool: str) -> Preferences:
    """Return preferences with one policy rule."""
    return Preferences(policy=Policy(rules=[Rule.model_validate({"effect": effect, "tool": tool})]))


@asynccontextmanager
async def gateway_over(
    *servers: FastMCP[Any] | Connection,
    home: Path,
    preferences: Preferences | None = None,
    config: ProxyConfig | None = None,
    confirms_reads: bool = True,
    patience_s: float = 20,
    **switches: bool,
) -> AsyncIterator[Gateway]:
    """Open a gateway to servers of this process."""
    connections = [one if isinstance(one, Connection) else in_process(one) for one in servers]
    context = RoutingContext.model_validate(switches)
    async with (
        McpHub(connections, preferences=confirming_preferences(preferences) if confirms_reads else preferences) as hub,
        open_gateway_to_hub(
            hub, Settings(home=home, patience_s=patience_s), config or ProxyConfig(), context
        ) as gateway,
    ):
        yield gateway


@asynccontextmanager
async def served(
    gateway: Gateway, tokens: dict[str, str] | None = None, hosts: list[str] | None = None
) -> AsyncIterator[str]:
    """Serve a gateway over HTTP, and yield its URL."""
    listening = bind_socket("127.0.0.1", 0)
    app = http_app(gateway, tokens or {}, hosts or [])
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, lifespan="on", ws="none")
    )
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    running = asyncio.create_task(server._serve([listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await running


@dataclass
class CallResult:
    """The result of a call."""

    is_error: bool
    text: str
    structured: dict[str, Any]


@dataclass
class Talk:
    """The connection of one client."""

    client: Any
    kind: ClientKind
    url: str
    gateway: Gateway = field(kw_only=True)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client is told that the tool list changed."""
    asked: list[str] = field(default_factory=list)
    """The questions that the client was asked."""

    async def names(self) -> set[str]:
        """Return the names on the tool list."""
        return {tool.name for tool in await self.tools()}

    async def tools(self) -> list[mcp_types.Tool]:
        """Return the tool list, all pages of it."""
        if self.kind.library == "fastmcp":
            return list(await self.client.list_tools())
        found, cursor = [], None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def call_raw(self, name: str, arguments: dict[str, Any]) -> mcp_types.CallToolResult:
        """Call a tool and return the protocol's result."""
        call = self.client.call_tool_mcp if self.kind.library == "fastmcp" else self.client.call_tool
        result: mcp_types.CallToolResult = await call(name, arguments)
        return result

    async def call(self, name: str, /, **arguments: Any) -> CallResult:
        """Call a tool."""
        result = await self.call_raw(name, arguments)
        text = "\n".join(block.text for block in result.content if isinstance(block, mcp_types.TextContent))
        return CallResult(bool(result.is_error), text, result.structured_content or {})

    async def set_context(self, query: str) -> dict[str, str]:
        """Set the context; return what later calls must send."""
        context_id = (await self.call("set_context", query=query)).structured["context_id"]
        return {"context_id": context_id} if context_id else {}

    async def other_answers(self) -> bool:
        """Whether `other_server` answers."""
        result = await self.call("call_read_tool", name="other.echo", arguments={"text": "x"})
        return (result.is_error, result.text) == (False, "other says x")

    async def names_now(self) -> set[str]:
        """Return the tool list of a client that connects now: a connected client may cache its own."""
        async with talking(self.gateway, self.url, self.kind) as talk:
            return await talk.names()


@asynccontextmanager
async def talking(
    gateway: Gateway, url: str, kind: ClientKind = LEGACY, answer: Answer | None = None, token: str = ""
) -> AsyncIterator[Talk]:
    """Connect a client; with `answer` it supports elicitation."""
    talk = Talk(None, kind, url, gateway=gateway)

    async def on_message(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            talk.changed.set()

    async def decided(params: Any) -> mcp_types.ElicitResult:
        talk.asked.append(params.message)
        assert answer is not None
        reply = answer(params.message, params.requested_schema["properties"]["answer"]["enum"])
        reply = await reply if isawaitable(reply) else reply
        if reply is None:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content={"answer": reply})

    async def by_fastmcp(message: str, response_type: Any, params: Any, context: Any) -> Any:
        return await decided(params)

    async def by_sdk(context: Any, params: Any) -> Any:
        return await decided(params)

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with AsyncExitStack() as stack:
        if kind.library == "fastmcp":
            transport = StreamableHttpTransport(url, headers=headers)
            handlers: dict[str, Any] = {"elicitation_handler": by_fastmcp} if answer else {}
            talk.client = Client(transport, mode=kind.protocol, message_handler=on_message, **handlers)
        else:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
            stream = streamable_http_client(url, http_client=http)
            callbacks: dict[str, Any] = {"elicitation_callback": by_sdk} if answer else {}
            talk.client = mcp.Client(stream, mode=kind.protocol, message_handler=on_message, **callbacks)
        await stack.enter_async_context(talk.client)
        yield talk


@asynccontextmanager
async def proxy_client(
    home: Path,
    *servers: FastMCP[Any] | Connection,
    kind: ClientKind = LEGACY,
    answer: Answer | None = None,
    **options: Any,
) -> AsyncIterator[Talk]:
    """Open a gateway over servers, serve it, and connect one client; `options` are those of `gateway_over`."""
    async with (
        gateway_over(*servers, home=home, **options) as gateway,
        served(gateway) as url,
        talking(gateway, url, kind, answer) as talk,
    ):
        yield talk


async def notified(event: asyncio.Event) -> None:
    """Wait for a notification, which travels beside the answers."""
    await asyncio.wait_for(event.wait(), 30)
