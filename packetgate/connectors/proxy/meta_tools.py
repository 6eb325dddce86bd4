"""The proxy's own tools: set a context, search and describe tools, and call any of them."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.tools.base import ToolResult
from pydantic import BeforeValidator, Field

from packetgate.connectors.proxy.calling import call_any_tool
from packetgate.connectors.proxy.client_link import is_sessionless
from packetgate.connectors.proxy.gateway import Gateway, refusal
from packetgate.connectors.proxy.listing import MIN_CONTEXT_TOOLS, is_small, sort_entries
from packetgate.connectors.proxy.sessions import ProxySession
from packetgate.ranking.learning import DEFAULT_CONTEXT_TYPE, add_support
from packetgate.ranking.ranking import ranking_of
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.tools.text.result_store import session_results
from packetgate.toolsets.builtin.files import ToolFailure
from packetgate.toolsets.builtin.reading import LineRange, read_stored

MAX_SEARCH_RESULTS = 50
MAX_DESCRIBED = 50
MAX_UNKNOWN = 5
"""Maximum number of unknown words or names for which similar tools are returned."""
MAX_NEAREST = 3

ToolFunction = TypeVar("ToolFunction", bound=Callable[..., Any])
Query = Annotated[str, Field(min_length=1, max_length=4_000, description="What you are trying to accomplish.")]
ContextId = Annotated[
    str,
    BeforeValidator(lambda value: value or ""),  # a null is accepted, but some clients cannot read it in a schema
    Field(description="The context_id that set_context returned, if it returned one.", max_length=100),
]
ToolName = Annotated[str, Field(min_length=1, max_length=300, description="The tool's name, as listed or found.")]
Arguments = Annotated[
    dict[str, Any],
    BeforeValidator(lambda value: value or {}),
    Field(description="The tool's arguments, as in its schema."),
]
_NO_ARGUMENTS: dict[str, Any] = {}


def add_meta_tools(server: FastMCP[Any], gateway: Gateway) -> None:
    """Register the proxy's own tools on a server."""

    def meta_tool(title: str, **hints: bool) -> Callable[[ToolFunction], ToolFunction]:
        reads = {"read_only_hint": True, "destructive_hint": False, "open_world_hint": False}
        return server.tool(title=title, annotations=mcp_types.ToolAnnotations(**{**reads, **hints}))

    @meta_tool("Set the context", idempotent_hint=True)
    async def set_context(ctx: Context, query: Query) -> dict[str, Any]:
        """Tell the proxy what you're trying to accomplish so it can surface relevant tools."""
        session = gateway.session_of(ctx)
        await gateway.load_labels(session)
        has_own_words = not session.labels
        catalogue = await gateway.catalogue(session)
        palette = await gateway.choose_tools(query, session, catalogue)
        context_id = None
        if is_sessionless(ctx):
            context_id, session = gateway.sessions.open_context(session)
        session.query, session.palette, session.has_own_words = query, palette, has_own_words
        session.has_results = False
        small = is_small(catalogue, session.settings)
        if context_id is None and not small:
            await ctx.send_notification(mcp_types.ToolListChangedNotification())
        best = sorted(palette, key=lambda entry: -entry.score)[:MIN_CONTEXT_TOOLS]
        return {
            "tools": [_brief_entry(catalogue[entry.tool_name]) for entry in best],
            "listed": context_id is None or small,  # other tools need call_read_tool or call_changing_tool
            "context_id": context_id,  # for calls and searches in a protocol without sessions
            "unknown_words": await asyncio.to_thread(_unknown_words, query, catalogue),
        }

    @meta_tool("Find tools")
    async def search_tools(
        ctx: Context,
        query: Query,
        limit: Annotated[
            int, Field(ge=1, le=MAX_SEARCH_RESULTS, description="Maximum number of tools to return.")
        ] = 10,
        context_id: ContextId = "",
    ) -> dict[str, Any]:
        """Search all tools by what they do. Call one with call_read_tool or call_changing_tool."""
        session = gateway.session_of(ctx, context_id)
        catalogue = await gateway.catalogue(session)
        hits = await asyncio.to_thread(ranking_of(catalogue).rank, query, limit)
        if learned := await gateway.learned_uses(session):
            support = learned.support(query, DEFAULT_CONTEXT_TYPE)
            hits = add_support(hits, {name: share for name, share in support.items() if name in catalogue})[:limit]
        session.found_tools.update(hit.name for hit in hits)
        unknown = await asyncio.to_thread(_unknown_words, query, catalogue)
        return {"tools": [_brief_entry(catalogue[hit.name]) for hit in hits], "unknown_words": unknown}

    @meta_tool("Read tools in full")
    async def fetch_tool_description(
        ctx: Context,
        names: Annotated[
            list[str], Field(min_length=1, max_length=100, description="Names, servers or categories; * for all.")
        ],
        context_id: ContextId = "",
    ) -> dict[str, Any]:
        """Read tools in full, with the schema of their arguments: by name, server or category."""
        session = gateway.session_of(ctx, context_id)
        catalogue = await gateway.catalogue(session)
        known, unknown = await asyncio.to_thread(_resolve_names, names, session, catalogue)
        session.found_tools.update(known[:MAX_DESCRIBED])
        return {
            "tools": [_full_entry(catalogue[name]) for name in known[:MAX_DESCRIBED]],
            "instructions": {
                name: text
                for name, text in gateway.hub.instructions().items()
                if gateway.may_use_server(name) and any(catalogue[tool].server == name for tool in known)
            },
            "left_out": max(0, len(known) - MAX_DESCRIBED),
            "unknown": unknown,
        }

    @meta_tool("Read a long result")
    async def read_result(
        ctx: Context,
        handle: Annotated[str, Field(max_length=100, description='The handle in a cut result: "kept:...".')],
        first_line: Annotated[int, Field(ge=1, description="The line to start at.")] = 1,
        max_lines: Annotated[int, Field(ge=1, le=100_000, description="Maximum number of lines to return.")] = 2000,
        context_id: ContextId = "",
    ) -> str:
        """Read a result that was too long to return at once. The last line says how to read on."""
        session = gateway.session_of(ctx, context_id)
        with session_results(session.storage_key(handle)):
            try:
                lines = LineRange(first_line, head=max_lines)
                return await asyncio.to_thread(read_stored, gateway.results, handle, lines)
            except ToolFailure as error:
                raise refusal(str(error)) from error

    @meta_tool("Call a tool that reads", open_world_hint=True)
    async def call_read_tool(
        ctx: Context, name: ToolName, arguments: Arguments = _NO_ARGUMENTS, context_id: ContextId = ""
    ) -> ToolResult:
        """Call any tool that only reads, listed or not. A call that would change something is refused here."""
        return await call_any_tool(gateway, ctx, name, arguments, context_id, only_reads=True)

    @meta_tool("Call a tool that changes something", read_only_hint=False, destructive_hint=True, open_world_hint=True)
    async def call_changing_tool(
        ctx: Context, name: ToolName, arguments: Arguments = _NO_ARGUMENTS, context_id: ContextId = ""
    ) -> ToolResult:
        """Call any tool that may change something or run a command, listed or not. The user may be asked first."""
        return await call_any_tool(gateway, ctx, name, arguments, context_id, only_reads=False)


def _brief_entry(spec: ToolSpec) -> dict[str, Any]:
    arguments = spec.signature()
    return {"name": spec.listed_name, "description": spec.brief, "risk": spec.risk, "arguments": arguments}


def _full_entry(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.listed_name,
        "description": spec.full,
        "risk": spec.risk,
        "risk_because": spec.risk_reasons,
        "input_schema": spec.input_schema,
        "output_schema": spec.output_schema,
    }


def _unknown_words(words: str, catalogue: Catalogue) -> dict[str, list[str]]:
    return {word: _nearest_names(word, catalogue) for word in ranking_of(catalogue).unknown_words(words)[:MAX_UNKNOWN]}


def _nearest_names(name: str, catalogue: Catalogue) -> list[str]:
    return [catalogue[near].listed_name for near in catalogue.similar_names(name, MAX_NEAREST)]


def _resolve_names(
    names: Iterable[str], session: ProxySession, catalogue: Catalogue
) -> tuple[list[str], dict[str, list[str]]]:
    tools: dict[str, None] = {}
    unknown: dict[str, list[str]] = {}
    for name in names:
        if name.strip() == "*":
            tools |= dict.fromkeys([*(entry.tool_name for entry in sort_entries(session.palette)), *catalogue])
        elif known := catalogue.canonical(name):
            tools[known] = None
        elif group := catalogue.group(name):
            tools |= dict.fromkeys(group)
        elif len(unknown) < MAX_UNKNOWN:
            unknown[name] = _nearest_names(name, catalogue)
    return [name for name in tools if name in catalogue], unknown
