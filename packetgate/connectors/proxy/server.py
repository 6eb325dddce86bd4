"""The proxy as an MCP server: FastMCP's, with lists of its own."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.auth import AuthProvider
from fastmcp.server.dependencies import get_context
from fastmcp.server.providers.base import Provider
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.utilities.components import FastMCPComponent
from fastmcp.utilities.versions import VersionSpec
from mcp_types import SubscriptionsListenRequestParams

from packetgate.connectors.proxy.calling import Calling
from packetgate.connectors.proxy.gateway import Gateway
from packetgate.connectors.proxy.listing import in_order, listed
from packetgate.connectors.proxy.meta import add_meta_tools
from packetgate.connectors.proxy.passing import Passing, behind_all, completing

PAGE = 100
"""Tools on a page of a list."""
FRESH_S = 300
"""How long a client may take a list for fresh: what stands on it without a context changes with the servers alone."""
INSTRUCTIONS = (
    "A proxy in front of several MCP servers. Call set_context first, with what you are trying to accomplish: relevant "
    "tools are then listed, or returned. Any other tool is found by search_tools, read by fetch_tool_description, and "
    "called by call_read_tool or call_changing_tool."
)


class PaletteProvider(Provider):
    """The tools of all servers behind, as far as the session that asks has them on its list."""

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
        """Return what may run in the background: nothing, as what is asked about waits for its client."""
        return []

    async def _called(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return await Calling(self._gateway).call_listed(get_context(), name, arguments)


def make_server(gateway: Gateway, auth: AuthProvider | None = None) -> FastMCP[Any]:
    """Return the server of a gateway."""
    server: FastMCP[Any] = FastMCP(
        "packetgate",
        instructions=INSTRUCTIONS,
        version=version("packetgate"),
        auth=auth,
        providers=[PaletteProvider(gateway), behind_all(gateway)],
        middleware=[Passing(gateway)],
        mask_error_details=True,
        list_page_size=PAGE,
        cache_ttl=FRESH_S,
        cache_scope="private",
        dereference_schemas=False,  # a chain of definitions grows a hundredfold where each is written out
    )
    # No tool here asks for headers of its own. Without this, every call over HTTP would make the whole list first.
    server._mcp_server.get_tool_input_schema = lambda _name: None
    listening = gateway.announcer.listening()
    server._mcp_server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, listening)
    server.add_completion_handler(completing(gateway))
    add_meta_tools(server, gateway)
    return server
