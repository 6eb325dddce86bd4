"""The proxy over HTTP in this process, and clients of both protocols."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import Any, Literal

import mcp_types
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from support.confirmed_reads import confirming_preferences
from support.mcp_servers import RawTool, echoing, in_process, serving
from support.plain_server import configure

from packetgate.connectors.clients import Clients
from packetgate.connectors.proxy.gateway import Gateway
from packetgate.connectors.proxy.serving import http_app, open_gateway, open_gateway_to_hub
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.tools.catalogue.preferences import Policy, Preferences
from packetgate.tools.policy.rules import Rule
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.hub import McpHub

Protocol = Literal["legacy", "2026-07-28"]
LEGACY: Protocol = "legacy"
MODERN: Protocol = "2026-07-28"
META = {"set_context", "search_tools", "fetch_tool_description", "call_read_tool", "call_changing_tool", "read_result"}
TOKENS = {"ide-token-0123456789": "ide", "desk-token-0123456789": "desk"}
IDE, DESK = TOKENS
ADD: dict[str, Any] = {"name": "ledger.add_entry", "arguments": {"text": "x"}}

Answer = Callable[[str, list[str]], str | Awaitable[str | None] | None]
"""Takes a question and the offered answers, and returns an answer, or None to decline."""


def ledger_server(written: list[str], tools: int = 0) -> FastMCP:
    """Return a server that reads and writes entries, with `tools` additional tools that fit no request."""
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


class _RecordingTool(RawTool):
    ran: Any
    result: Any

    async def run(self, arguments: dict[str, Any]) -> Any:
        self.ran.append(self.name)
        return self.result if isinstance(self.result, ToolResult) else self.convert_result(self.result)


class Offering:
    """A server that offers and replaces tools one by one; `ran` lists the executed tools."""

    def __init__(self, name: str) -> None:
        self.server: FastMCP[Any] = FastMCP(name, on_duplicate="replace")
        self.ran: list[str] = []

    def offer(self, name: str, *parameters: str, result: Any = "done", **more: Any) -> None:
        """Add a tool with required text parameters, or replace the tool of the same name."""
        properties = {parameter: {"type": "string"} for parameter in parameters}
        schema = {"type": "object", "properties": properties, "required": [*parameters]}
        fields = {"name": name, "description": f"{name.replace('_', ' ')}.".capitalize(), "parameters": schema, **more}
        tool = _RecordingTool.model_validate({**fields, "result": result, "ran": None})
        self.server.add_tool(tool.model_copy(update={"ran": self.ran}))


def other_server() -> FastMCP:
    """Return a second server, for `other_answers`."""
    return echoing("other")


def rules(effect: str, tool: str) -> Preferences:
    """Return preferences with one policy rule."""
    return Preferences(policy=Policy(rules=[Rule.model_validate({"effect": effect, "tool": tool})]))


@asynccontextmanager
async def gateway_over(
    *servers: FastMCP[Any] | Connection,
    home: Path,
    preferences: Preferences | None = None,
    config: Clients | None = None,
    patience_s: float | None = 20,
    answer_wait_s: float = 0,
    **switches: bool,
) -> AsyncIterator[Gateway]:
    """Open a gateway to servers in this process."""
    connections = [one if isinstance(one, Connection) else in_process(one) for one in servers]
    patience = {} if patience_s is None else {"patience_s": patience_s}
    settings = Settings(home=home, answer_wait_s=answer_wait_s, **patience)
    context = RoutingContext.model_validate(switches)
    async with (
        McpHub(connections, preferences=confirming_preferences(preferences)) as hub,
        open_gateway_to_hub(hub, settings, config or Clients(), context) as gateway,
    ):
        yield gateway


@asynccontextmanager
async def served(
    gateway: Gateway, tokens: dict[str, str] | None = None, hosts: list[str] | None = None
) -> AsyncIterator[str]:
    """Serve a gateway over HTTP, and yield its URL."""
    async with serving(http_app(gateway, tokens or {}, hosts or [])) as address:
        yield f"{address}/mcp"


@dataclass
class CallResult:
    """The result of a call."""

    is_error: bool
    text: str
    structured: dict[str, Any]


@dataclass
class Talk:
    """The connection of one client."""

    client: Client[Any]
    kind: Protocol
    url: str
    gateway: Gateway = field(kw_only=True)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client is notified that the tool list changed."""
    notices: list[str] = field(default_factory=list)
    """The methods of all notifications about lists."""
    asked: list[str] = field(default_factory=list)
    """The questions that the client received."""

    async def names(self) -> set[str]:
        """Return the names on the tool list."""
        return {tool.name for tool in await self.client.list_tools()}

    async def call(self, name: str, /, **arguments: Any) -> CallResult:
        """Call a tool."""
        result = await self.client.call_tool_mcp(name, arguments)
        text = "\n".join(block.text for block in result.content if isinstance(block, mcp_types.TextContent))
        return CallResult(bool(result.is_error), text, result.structured_content or {})

    async def set_context(self, query: str) -> dict[str, str]:
        """Set the context, and return the arguments that later calls must send."""
        context_id = (await self.call("set_context", query=query)).structured["context_id"]
        return {"context_id": context_id} if context_id else {}

    async def other_answers(self) -> bool:
        """Return whether `other_server` answers."""
        result = await self.call("call_read_tool", name="other.echo", arguments={"text": "x"})
        return (result.is_error, result.text) == (False, "other says x")

    async def until_list_changed(self) -> None:
        """Wait until the client is notified that the tool list changed."""
        await asyncio.wait_for(self.changed.wait(), 30)


@asynccontextmanager
async def talking(
    gateway: Gateway,
    url: str,
    kind: Protocol = LEGACY,
    answer: Answer | None = None,
    token: str = "",
    **headers: str,
) -> AsyncIterator[Talk]:
    """Connect a client that sends `headers`; with `answer` it supports elicitation."""
    asked, changed, notices = list[str](), asyncio.Event(), list[str]()

    async def on_message(message: Any) -> None:
        if (method := getattr(message, "method", "")).endswith("/list_changed"):
            notices.append(method)
        if isinstance(message, mcp_types.ToolListChangedNotification):
            changed.set()

    async def decide(message: str, _type: Any, params: Any, _context: Any) -> mcp_types.ElicitResult:
        asked.append(message)
        assert answer is not None
        reply = answer(message, params.requested_schema["properties"]["answer"]["enum"])
        reply = await reply if isawaitable(reply) else reply
        if reply is None:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content={"answer": reply})

    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    sent |= {"Authorization": f"Bearer {token}"} if token else {}
    transport = StreamableHttpTransport(url, headers=sent)
    handlers: dict[str, Any] = {"elicitation_handler": decide} if answer else {}
    async with Client(transport, mode=kind, message_handler=on_message, **handlers) as client:
        yield Talk(client, kind, url, gateway=gateway, changed=changed, notices=notices, asked=asked)


@asynccontextmanager
async def proxy_client(
    home: Path,
    *servers: FastMCP[Any] | Connection,
    kind: Protocol = LEGACY,
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


@asynccontextmanager
async def configured_client(
    folder: Path, home: Path, servers: dict[str, Any], kind: Protocol = LEGACY, **switches: bool
) -> AsyncIterator[Talk]:
    """Write `mcp.json` with these servers, or with the built-in one, and connect a client that cannot ask."""
    config = configure(folder / "mcp.json", builtin=not servers, **servers)
    settings = Settings(mcp_config=config, home=home, root=folder, answer_wait_s=0)
    async with (
        open_gateway(settings, Clients(), RoutingContext.model_validate(switches)) as gateway,
        served(gateway) as url,
        talking(gateway, url, kind) as talk,
    ):
        yield talk
