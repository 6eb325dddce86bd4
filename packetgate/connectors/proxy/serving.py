"""The proxy as a FastMCP server with its own tool lists, over stdio or HTTP."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.auth import AccessToken, AuthProvider, TokenVerifier
from fastmcp.server.dependencies import get_context
from fastmcp.server.http import StarletteWithLifespan
from fastmcp.server.providers.base import Provider
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.utilities.components import FastMCPComponent
from fastmcp.utilities.versions import VersionSpec
from mcp_types import SubscriptionsListenRequestParams
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from packetgate.connectors import process
from packetgate.connectors.clients import CONTEXT_NAME, LOCAL, ProxyConfig, client_of
from packetgate.connectors.http import check_guarded, serve_app
from packetgate.connectors.process import end, stopped_by_ctrl_c
from packetgate.connectors.proxy.announcing import Announcer
from packetgate.connectors.proxy.calling import Calling
from packetgate.connectors.proxy.chain import Chain
from packetgate.connectors.proxy.gateway import LIST_PATIENCE_S, Gateway
from packetgate.connectors.proxy.listing import in_order, listed
from packetgate.connectors.proxy.meta import add_meta_tools
from packetgate.connectors.proxy.passing import RedactionMiddleware, completing, upstream_providers
from packetgate.connectors.proxy.storage import LOCKED_S, QUICK_S, LateJournal, Recorder, Storage
from packetgate.graph.composition import open_tools
from packetgate.graph.journal.database import open_journal
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.context import RoutingContext
from packetgate.state.private_names import add_method
from packetgate.tools.servers.hub import McpHub

PAGE = 100
"""Tools on a page of a list."""
FRESH_S = 300
"""Seconds that a client may cache a list: without a context it changes only with the servers."""
INSTRUCTIONS = (
    "A proxy in front of several MCP servers. Call set_context first, with what you are trying to accomplish: relevant "
    "tools are then listed, or returned. Any other tool is found by search_tools, read by fetch_tool_description, and "
    "called by call_read_tool or call_changing_tool."
)


class PaletteProvider(Provider):
    """Upstream tools that are listed for the requesting session."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        self._gateway = gateway

    async def _list_tools(self) -> Sequence[Tool]:
        session = self._gateway.session_of(get_context())
        await self._gateway.catalogue(session)
        await self._gateway.announcer.has_shown(get_context())
        catalogue = await self._gateway.catalogue(session)  # what comes later is announced
        entries = in_order(await self._gateway.listed(session, catalogue))
        tools = [listed(catalogue[entry.tool_name], entry.shown, self._called) for entry in entries]
        return [*{tool.name: tool for tool in tools}.values()]  # a name twice is an error to whole clients

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        session = self._gateway.session_of(get_context())
        catalogue = await self._gateway.catalogue(session, name)
        known = catalogue.exactly(name)
        return listed(catalogue[known], "full", self._called) if known else None

    async def get_tasks(self) -> Sequence[FastMCPComponent]:
        """Return no background tasks: approvals wait for the client."""
        return []

    async def _called(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return await Calling(self._gateway).call_listed(get_context(), name, arguments)


def make_server(gateway: Gateway, auth: AuthProvider | None = None) -> FastMCP[Any]:
    """Return the MCP server of a gateway."""
    server: FastMCP[Any] = FastMCP(
        "packetgate",
        instructions=INSTRUCTIONS,
        version=version("packetgate"),
        auth=auth,
        providers=[PaletteProvider(gateway), upstream_providers(gateway)],
        middleware=[RedactionMiddleware(gateway)],
        mask_error_details=True,
        list_page_size=PAGE,
        cache_ttl=FRESH_S,
        cache_scope="private",
        dereference_schemas=False,  # a chain of definitions grows a hundredfold where each is written out
    )
    add_method(server, "subscriptions/listen", SubscriptionsListenRequestParams, gateway.announcer.listening())
    server.add_completion_handler(completing(gateway))
    add_meta_tools(server, gateway)
    return server


@asynccontextmanager
async def open_gateway(
    settings: Settings, config: ProxyConfig, started: RoutingContext, client: str = LOCAL
) -> AsyncIterator[Gateway]:
    """Open a gateway to the configured servers.

    Raises:
        ConfigError, ModelError: something in the settings cannot be used.
    """
    async with (
        open_tools(settings, only_configured=True) as hub,
        gateway_to(hub, settings, config, started, client) as gateway,
    ):
        yield gateway


@asynccontextmanager
async def gateway_to(
    hub: McpHub, settings: Settings, config: ProxyConfig, started: RoutingContext, client: str = LOCAL
) -> AsyncIterator[Gateway]:
    """Open a gateway to a hub's servers; on exit, write the pending records and close everything.

    Raises:
        ConfigError: the database cannot be used.
    """
    journal = open_journal(settings, LOCKED_S)
    process.restore_gc()
    async with (
        Storage(settings, hub, journal) as storage,
        LateJournal(open_journal(settings, QUICK_S), journal).writing() as late,
        Recorder(storage, late).writing() as recorder,
        Announcer(hub).running() as announcer,
    ):
        yield Gateway(
            chain=Chain.of(hub, journal, late, storage),
            config=config,
            started=started,
            recorder=recorder,
            announcer=announcer,
            patience_s=settings.patience_s if "patience_s" in settings.model_fields_set else LIST_PATIENCE_S,
            kept=result_store(settings),
            client=client,
        )


PATH = "/mcp"
CONTEXTS = "/context/"
TOKEN = "PACKETGATE_PROXY_TOKEN"  # noqa: S105
"""Environment variable with the token of the client `local`."""


class ClientTokens(TokenVerifier):
    """Verifies the tokens of configured clients."""

    def __init__(self, tokens: dict[str, str]) -> None:
        super().__init__()
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the client of a token, or None."""
        known = client_of(token, self._tokens)
        return AccessToken(token=token, client_id=known, scopes=[]) if known else None


class ByContext:
    """Routes `/context/NAME/mcp` to the server of fixed lists, and all other requests to the main server."""

    def __init__(self, follows: StarletteWithLifespan, fixed: StarletteWithLifespan) -> None:
        self._follows = follows
        self._fixed = fixed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route a request."""
        path = scope.get("path", "")
        if not path.startswith(CONTEXTS):
            await self._follows(scope, receive, send)
            return
        name = path.removeprefix(CONTEXTS).removesuffix(PATH)
        if path.endswith(PATH) and CONTEXT_NAME.fullmatch(name):
            await self._fixed(scope, receive, send)
            return
        error = f"{path}: a context's address is /context/NAME/mcp, its name at most 64 of a-z, 0-9, - and _"
        await JSONResponse({"error": error}, status_code=404)(scope, receive, send)


async def serve_stdio(gateway: Gateway) -> None:
    """Serve the client at standard input and output until it disconnects.

    A signal ends the process after the pending records are written: the read of standard input cannot be stopped.
    """
    loop = asyncio.get_running_loop()

    async def stopped() -> None:
        await gateway.recorder.written()
        end()

    with stopped_by_ctrl_c(lambda: asyncio.run_coroutine_threadsafe(stopped(), loop)):
        await make_server(gateway).run_stdio_async(show_banner=False, log_level="WARNING")


async def serve_http(gateway: Gateway, listening: socket.socket, tokens: dict[str, str], hosts: list[str]) -> None:
    """Serve clients over streamable HTTP until stopped.

    Raises:
        ConfigError: others than this machine could reach it, and no client has a token.
    """
    check_guarded(listening, has_tokens=bool(tokens), table="proxy", variable=TOKEN)
    await serve_app(http_app(gateway, tokens, hosts), listening)


def http_app(gateway: Gateway, tokens: dict[str, str], hosts: list[str]) -> Starlette:
    """Return both servers as one application."""
    auth = ClientTokens(tokens) if tokens else None

    def guarded(server: FastMCP[Any], path: str) -> StarletteWithLifespan:
        return server.http_app(path=path, host_origin_protection=True, allowed_hosts=hosts)

    follows = guarded(make_server(gateway, auth), PATH)
    fixed = guarded(make_server(gateway, auth), f"{CONTEXTS}{{name}}{PATH}")

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for app in (follows, fixed):
                await running.enter_async_context(app.lifespan(app))
            yield

    return Starlette(routes=[Mount("/", ByContext(follows, fixed))], lifespan=lifespan)
