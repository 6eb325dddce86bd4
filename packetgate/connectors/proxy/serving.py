"""The proxy as a FastMCP server over stdio or HTTP: listed tools, and the resources and prompts of its servers."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import mcp_types
from fastmcp import FastMCP
from fastmcp.exceptions import NotFoundError
from fastmcp.prompts.base import Prompt
from fastmcp.resources.base import Resource, ResourceContent, ResourceResult
from fastmcp.resources.template import ResourceTemplate
from fastmcp.server.auth import AccessToken, AuthProvider, TokenVerifier
from fastmcp.server.dependencies import get_context
from fastmcp.server.http import StarletteWithLifespan
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.providers.aggregate import AggregateProvider
from fastmcp.server.providers.base import Provider
from fastmcp.server.providers.proxy import ProxyProvider, ProxyResource
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.utilities.components import FastMCPComponent
from fastmcp.utilities.versions import VersionSpec
from mcp import MCPError

from packetgate.connectors.clients import LOCAL_CLIENT, Clients, client_for_token
from packetgate.connectors.http import check_tokens_required, serve_app
from packetgate.connectors.process import STOP_S, end_process, stopped_by_ctrl_c
from packetgate.connectors.proxy.announcing import Announcer, ListKind
from packetgate.connectors.proxy.calling import call_shown_tool
from packetgate.connectors.proxy.client_link import is_sessionless
from packetgate.connectors.proxy.completing import complete
from packetgate.connectors.proxy.gateway import SEARCH_PATIENCE_S, Gateway, refusal
from packetgate.connectors.proxy.listing import listed_tool, sort_entries
from packetgate.connectors.proxy.meta_tools import add_meta_tools
from packetgate.connectors.proxy.recording import DATABASE_PATIENCE_S, open_recorder
from packetgate.connectors.proxy.resolving import ToolResolution, resolves_calls
from packetgate.gate.gate import Gate
from packetgate.graph.journal import open_journal
from packetgate.graph.servers import open_tools
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.context import RoutingContext
from packetgate.state.redaction import redacted
from packetgate.tools.spec.descriptions import listed_name
from packetgate.toolsets.servers.callers import passed_capabilities
from packetgate.toolsets.servers.hub import McpHub

PATH = "/mcp"
PROXY_TOKEN_VARIABLE = "PACKETGATE_PROXY_TOKEN"  # noqa: S105
PAGE_TOOLS = 100
CACHE_S = 300
"""Seconds that a client may cache a list: without a context, a list changes only when the servers change."""
INSTRUCTIONS = (
    "A proxy in front of several MCP servers. Call set_context first, with what you are trying to accomplish: relevant "
    "tools are then listed, or returned. Find any other tool with search_tools, read it with fetch_tool_description, "
    "and call it with call_read_tool or call_changing_tool."
)


class PaletteProvider(Provider):
    """Upstream tools that are listed for the requesting session."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        self._gateway = gateway

    async def _list_tools(self) -> Sequence[Tool]:
        session = self._gateway.session_of(get_context())
        await self._gateway.listed_catalogue(session)
        await self._gateway.announcer.remember_client(get_context(), "tools")
        catalogue = await self._gateway.listed_catalogue(session)  # later changes are announced
        entries = sort_entries(await self._gateway.tool_list(session, catalogue))
        session.listed_tools |= {entry.tool_name: catalogue[entry.tool_name].digest for entry in entries}
        marks = resolves_calls(get_context())
        tools = [
            listed_tool(catalogue[entry.tool_name], entry.detail, self._call, marks_resolvable=marks)
            for entry in entries
        ]
        return [*{tool.name: tool for tool in tools}.values()]  # some clients reject a list that contains a name twice

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        session = self._gateway.session_of(get_context())
        catalogue = await self._gateway.catalogue(session, name)
        known = catalogue.exact_name(name)
        return listed_tool(catalogue[known], "full", self._call) if known else None

    async def get_tasks(self) -> Sequence[FastMCPComponent]:
        """Return no background tasks: approvals wait for the client."""
        return []

    async def _call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return await call_shown_tool(self._gateway, get_context(), name, arguments)


class UpstreamProvider(ProxyProvider):
    """The resources and prompts of one server, over the same session as its tool calls."""

    def __init__(self, gateway: Gateway, server: str) -> None:
        super().__init__(self._client, cache_ttl=0)
        self._gateway, self._server = gateway, server

    async def get_tasks(self) -> Sequence[FastMCPComponent]:
        """Return no background tasks; the default would ask the server for its lists at start."""
        return []

    def _client(self) -> Any:
        """Return the server's client. Raise METHOD_NOT_FOUND, which empties a list, if the client must not use it."""
        client = self._gateway.hub.clients().get(self._server)
        if client is None or not self._gateway.may_use_server(self._server):
            raise MCPError(mcp_types.METHOD_NOT_FOUND, f"server {self._server!r} is not connected")
        return client

    def _offers(self, capability: str) -> bool:
        # a server may never answer a request for something that it does not declare
        return self._server in self._gateway.hub.servers_with(capability)

    async def _list_tools(self) -> Sequence[Tool]:
        return []

    async def _list_resources(self) -> Sequence[Resource]:
        return await super()._list_resources() if self._offers("resources") else []

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        return await super()._list_resource_templates() if self._offers("resources") else []

    async def _list_prompts(self) -> Sequence[Prompt]:
        return await super()._list_prompts() if self._offers("prompts") else []

    async def _get_resource(self, uri: str, version: VersionSpec | None = None) -> Resource | None:
        resource = await super()._get_resource(uri, version)
        is_unlisted = resource is None and await self._get_resource_template(uri, version) is None
        if is_unlisted and "://" in uri:  # an answer may link to a resource that is not listed
            return ProxyResource.from_mcp_resource(self._client, mcp_types.Resource(uri=uri, name=uri))
        return resource


class UpstreamProviders(AggregateProvider):
    """The resources and prompts of all servers. Their tools are those of `PaletteProvider`, without a request to a
    server."""

    async def _list_tools(self) -> Sequence[Tool]:
        return []

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        return None


def upstream_providers(gateway: Gateway) -> UpstreamProviders:
    """Return the resources and prompts of all configured servers."""
    providers = UpstreamProviders()
    for server in gateway.hub.names:
        providers.add_provider(UpstreamProvider(gateway, server), namespace=server)
    return providers


class UpstreamMiddleware(Middleware):
    """Waits for servers, and redacts prompts and resources."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Store the client's capabilities, for servers that start later."""
        ctx, known, message = get_context(), self._gateway.hub.client_abilities, context.message
        is_first = isinstance(message, mcp_types.InitializeRequest)  # the session does not know them yet
        if declared := message.params.capabilities if is_first else ctx.session.client_capabilities:
            known.passed = {**passed_capabilities(declared), **known.passed}
            known.use_handshake = not is_sessionless(ctx) if known.use_handshake is None else known.use_handshake
        return await call_next(context)

    async def on_initialize(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Add the instructions of the servers that the client may use completely."""
        result = await call_next(context)
        if result is None:
            return None
        self._gateway.hub.maintain_servers()
        await self._gateway.hub.listed_catalogue()
        own = [
            f"Instructions of the server {name}:\n{text}"
            for name, text in self._gateway.hub.instructions().items()
            if self._gateway.may_use_server(name)
        ]
        return result.model_copy(update={"instructions": "\n\n".join([INSTRUCTIONS, *own])})

    on_discover = on_initialize

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """List the prompts of the connected servers; later changes are announced."""
        return await self._list("prompts", context, call_next)

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """List the resources of the connected servers; later changes are announced."""
        return await self._list("resources", context, call_next)

    on_list_resource_templates = on_list_resources

    async def _list(self, kind: ListKind, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        self._gateway.hub.maintain_servers()
        if self._gateway.list_patience_s:
            await self._gateway.hub.wait_until_started(self._gateway.list_patience_s)
        await self._gateway.announcer.remember_client(get_context(), kind)
        return await call_next(context)

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Call a tool. Name the server if a tool is unknown because its server is not connected."""
        try:
            return await call_next(context)
        except NotFoundError as error:
            settings = self._gateway.request_settings()
            if reason := self._gateway.unavailable_reason(context.message.name, settings):
                raise refusal(reason) from error
            session = self._gateway.session_of(get_context())
            if context.message.name in {listed_name(*name.split(".", 1)) for name in session.listed_tools}:
                raise refusal(f"{context.message.name} was NOT run: its server no longer offers it") from error
            raise

    async def on_read_resource(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, ResourceResult]
    ) -> ResourceResult:
        """Redact a resource, and remember its text as server output."""
        uri = str(context.message.uri)
        result = await self._call_after_start(uri, context, call_next)
        contents = [
            ResourceContent(redacted(content.content), mime_type=content.mime_type, meta=content.meta)
            if isinstance(content.content, str)
            else content
            for content in result.contents
        ]
        await self._remember(uri, [content.content for content in contents if isinstance(content.content, str)])
        return ResourceResult(contents, meta=result.meta)

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Redact a prompt, and remember its text as server output."""
        result = await self._call_after_start(context.message.name, context, call_next)
        texts = [message.content for message in result.messages if isinstance(message.content, mcp_types.TextContent)]
        for content in texts:
            content.text = redacted(content.text)
        await self._remember(context.message.name, [content.text for content in texts])
        return result

    async def _call_after_start(self, name: str, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Wait for the servers that a prompt's name or a resource's address contains, then continue."""
        hub = self._gateway.hub
        hub.maintain_servers()
        named = [server for server in hub.names if name.startswith(f"{server}_") or f"://{server}/" in name]
        await hub.wait_for_servers(*named)
        return await call_next(context)

    async def _remember(self, source: str, texts: Sequence[str]) -> None:
        session = self._gateway.session_of(get_context())
        await self._gateway.add_labels(session, session.remember_text(source, "\n".join(texts)).labels)


def make_server(gateway: Gateway, auth: AuthProvider | None = None) -> FastMCP[Any]:
    """Return the MCP server of a gateway."""
    server: FastMCP[Any] = FastMCP(
        "packetgate",
        instructions=INSTRUCTIONS,
        version=version("packetgate"),
        auth=auth,
        providers=[PaletteProvider(gateway), upstream_providers(gateway)],
        middleware=[UpstreamMiddleware(gateway)],
        mask_error_details=True,
        list_page_size=PAGE_TOOLS,
        cache_ttl=CACHE_S,
        cache_scope="private",
        dereference_schemas=False,  # nested definitions would grow a hundredfold
    )
    server.add_extension(ToolResolution(gateway))
    server.add_completion_handler(partial(complete, gateway))
    add_meta_tools(server, gateway)
    return server


@asynccontextmanager
async def open_gateway(
    settings: Settings, config: Clients, context: RoutingContext, client: str = LOCAL_CLIENT
) -> AsyncIterator[Gateway]:
    """Open a gateway to the configured servers. Raise ConfigError or ModelError if a setting cannot be used."""
    async with (
        open_tools(settings, only_configured=True) as hub,
        open_gateway_to_hub(hub, settings, config, context, client) as gateway,
    ):
        yield gateway


@asynccontextmanager
async def open_gateway_to_hub(
    hub: McpHub, settings: Settings, config: Clients, context: RoutingContext, client: str = LOCAL_CLIENT
) -> AsyncIterator[Gateway]:
    """Open a gateway to a hub's servers; on exit, write the pending records and close everything."""
    journal = open_journal(settings, DATABASE_PATIENCE_S)
    patience_s = settings.patience_s if "patience_s" in settings.model_fields_set else None
    async with open_recorder(settings, hub, journal) as recorder, Announcer(hub).announce_in_background() as announcer:
        gateway = Gateway(
            gate=Gate(journal, hub.call, unknown_hint="; search_tools finds more"),
            hub=hub,
            recorder=recorder,
            config=config,
            context=context,
            settings=settings,
            announcer=announcer,
            patience_s=SEARCH_PATIENCE_S if patience_s is None else patience_s,
            list_patience_s=patience_s or 0,
            results=result_store(settings),
            client=client,
        )
        try:
            yield gateway
        finally:
            waiting = [link.work for link in gateway.asking_calls.values()]
            for work in waiting:
                work.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


class ClientTokenVerifier(TokenVerifier):
    """Verifies the tokens of configured clients."""

    def __init__(self, tokens: dict[str, str]) -> None:
        super().__init__()
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the client of a token, or None."""
        known = client_for_token(token, self._tokens)
        return AccessToken(token=token, client_id=known, scopes=[]) if known else None


async def serve_stdio(gateway: Gateway) -> None:
    """Serve the client at standard input and output until it disconnects.

    A signal ends the process after the pending records are written: a read of standard input cannot be interrupted.
    """
    loop = asyncio.get_running_loop()

    async def stop() -> None:
        await gateway.recorder.wait_until_idle(STOP_S / 2)
        await gateway.recorder.wait_until_written()
        end_process()

    with stopped_by_ctrl_c(lambda: asyncio.run_coroutine_threadsafe(stop(), loop)):
        await make_server(gateway).run_stdio_async(show_banner=False, log_level="WARNING")


async def serve_http(gateway: Gateway, listening: socket.socket, tokens: dict[str, str], hosts: list[str]) -> None:
    """Serve clients over streamable HTTP until stopped. Raise ConfigError if tokens are missing."""
    check_tokens_required(listening, has_tokens=bool(tokens), table="proxy", variable=PROXY_TOKEN_VARIABLE)
    await serve_app(http_app(gateway, tokens, hosts), listening)


def http_app(gateway: Gateway, tokens: dict[str, str], hosts: list[str]) -> StarletteWithLifespan:
    """Return the application; `hosts` are additional host names by which clients may reach it."""
    server = make_server(gateway, ClientTokenVerifier(tokens) if tokens else None)
    # later clients may support it, although the first does not
    gateway.hub.client_abilities.passed["elicitation"] = {"form": {}, "url": {}}
    return server.http_app(path=PATH, host_origin_protection=True, allowed_hosts=hosts)
