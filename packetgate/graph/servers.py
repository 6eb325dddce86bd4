"""Open the servers that the settings name. This imports neither LangGraph nor a model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from packetgate.graph.private_files import private_folder
from packetgate.graph.settings import DEFAULT_CONFIG, DEFAULT_PREFERENCES, Settings
from packetgate.graph.shared_results import result_store
from packetgate.models.openai.kind import open_embeddings
from packetgate.plugins import Plugins, installed
from packetgate.ranking.ranking import Ranker
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.toolsets.builtin.sandbox import SandboxSettings
from packetgate.toolsets.builtin.undo_store import UndoStore
from packetgate.toolsets.servers.config import McpConfig, load_config
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import open_hub
from packetgate.toolsets.servers.server import Server, Toolset


async def make_hub(settings: Settings, config: McpConfig, *, caller_reads_results: bool = False) -> McpHub:
    """Return the hub of the configured servers, not yet entered.

    Raises:
        ConfigError, ModelError: a server's entry, or the embedding model, cannot be used.
    """
    if config.servers:  # the servers' logs are stored there
        await asyncio.to_thread(private_folder, settings.home)
    embeddings = await asyncio.to_thread(open_embeddings, settings.embeddings) if settings.embeddings else None
    preferences = await asyncio.to_thread(load_preferences, settings.preferences_path)
    ranker: Ranker | None = installed().part("rankers")
    return await open_hub(
        config,
        settings.root,
        settings.logs_path,
        embeddings,
        patience_s=settings.patience_s,
        preferences=preferences,
        sandbox=sandbox_settings(preferences, settings),
        kept=result_store(settings),
        ranker=ranker.kept_in(settings.vectors_path) if ranker else None,
        caller_reads_results=caller_reads_results,
        undo=UndoStore(settings.undo_path),
        other_servers=plugged_servers(installed(), settings.root),
    )


def plugged_servers(plugins: Plugins, root: Path) -> list[Server]:
    """Return new servers of the plug-ins' tools."""
    toolsets: tuple[Toolset, ...] = plugins.parts("toolsets")
    return [server for toolset in toolsets for server in toolset.servers(root)]


def sandbox_settings(preferences: Preferences, settings: Settings | None = None) -> SandboxSettings:
    """Return the sandbox settings: settings of the environment override settings of the file."""
    network = settings.sandbox_network if settings else None
    used = (settings.mcp_config or DEFAULT_CONFIG, settings.config or DEFAULT_PREFERENCES) if settings else ()
    return SandboxSettings(
        mode=(settings.sandbox if settings else None) or preferences.sandbox,
        network=preferences.sandbox_network if network is None else network,
        memory_gb=preferences.sandbox_memory_gb,
        reads=tuple(preferences.sandbox_reads),
        writes=tuple(preferences.sandbox_writes),
        data=settings.home.resolve() if settings else None,
        settings_files=tuple(used),
    )


@asynccontextmanager
async def open_tools(settings: Settings, *, only_configured: bool = False) -> AsyncIterator[McpHub]:
    """Open the MCP servers without a graph.

    Args:
        only_configured: leave out built-in tools that the configuration does not name. The caller must have its own
            reader of long results.

    Raises:
        ConfigError, ModelError: as in `make_hub`.
    """
    config = load_config(settings.config_path, settings.root)
    if only_configured and config.builtin == "reads":
        config = replace(config, builtin="none")
    async with await make_hub(settings, config, caller_reads_results=only_configured) as hub:
        yield hub
