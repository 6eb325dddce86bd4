"""From configuration to a hub: the configured servers, and the built-in ones."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from state.errors import ConfigError
from tools.catalogue.preferences import Preferences
from tools.servers.builtin import builtin_servers
from tools.servers.config import McpConfig
from tools.servers.hub import McpHub
from tools.servers.server import Server

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


async def open_hub(
    config: McpConfig,
    root: Path,
    log_dir: Path,
    embeddings: "Embeddings | None",
    *,
    patience_s: float,
    preferences: Preferences | None = None,
) -> McpHub:
    """Return the hub, not yet entered. The built-in servers run in this process.

    Raises:
        ConfigError: a server's entry has a form that no transport takes, or the name of a built-in server.
    """
    servers: list[Server] = await asyncio.to_thread(_configured, config, log_dir) if config.servers else []
    if config.builtin:
        builtin = await asyncio.to_thread(builtin_servers, root, embeddings)
        for server in config.servers:
            if server.name in builtin:
                where = f"{config.source}: server {server.name!r}"
                raise ConfigError(f'{where}: a built-in server has that name: rename it, or take "builtin" out')
        servers += builtin.values()
    return McpHub(servers, patience_s=patience_s, preferences=preferences)


def _configured(config: McpConfig, log_dir: Path) -> list[Server]:
    from tools.servers.connection import configured  # and with it FastMCP, which takes as long as all the rest

    return [configured(server, log_dir) for server in config.servers]
