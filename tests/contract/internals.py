"""The only private names that the suite uses, which open the proxy over servers in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport

from packetgate.connectors.clients import Clients
from packetgate.connectors.proxy.serving import make_server, open_gateway_to_hub
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.context import routing_context
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.hub import McpHub


@asynccontextmanager
async def open_proxy(
    server: FastMCP[Any], home: Path, settings: dict[str, Any], policy: Path | None, *, trusted: bool
) -> AsyncIterator[FastMCP[Any]]:
    """Open the proxy in front of one server, with its database in a folder."""
    own, entry = Settings(home=home, answer_wait_s=0), ServerConfig(server.name, {"trusted": trusted})
    connection = Connection(entry, lambda: FastMCPTransport(server), keep=result_store(own).keep)
    async with (
        McpHub([connection], preferences=load_preferences(policy)) as hub,
        open_gateway_to_hub(hub, own, Clients(), routing_context(settings)) as gateway,
    ):
        yield make_server(gateway)
