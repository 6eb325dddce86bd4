"""From configuration to a hub: the configured servers, and the built-in ones."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from state.errors import ConfigError
from tools.builtin.servers import builtin_servers
from tools.catalogue.preferences import Preferences
from tools.servers.config import McpConfig
from tools.servers.connection import Connection, configured
from tools.servers.hub import McpHub

if TYPE_CHECKING:
    from fastmcp import FastMCP


async def open_hub(
    config: McpConfig,
    root: Path,
    log_dir: Path,
    embeddings: Embeddings | None,
    *,
    patience_s: float,
    preferences: Preferences | None = None,
) -> McpHub:
    """Return the hub, not yet entered. The built-in servers run in this process and are trusted.

    Raises:
        ConfigError: a server's entry has a form that no transport takes, or the name of a built-in server.
    """
    connections = [configured(server, log_dir) for server in config.servers]
    if config.builtin:
        builtin = await asyncio.to_thread(builtin_servers, root, embeddings)
        for server in config.servers:
            if server.name in builtin:
                where = f"{config.source}: server {server.name!r}"
                raise ConfigError(f'{where}: a built-in server has that name: rename it, or take "builtin" out')
        connections += [_in_process(name, server) for name, server in builtin.items()]
    return McpHub(connections, patience_s=patience_s, preferences=preferences)


def _in_process(name: str, server: "FastMCP[Any]") -> Connection:
    from fastmcp.client.transports import FastMCPTransport

    return Connection(name, lambda: FastMCPTransport(server), trusted=True)
