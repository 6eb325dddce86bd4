"""Start servers, and open sessions on them with the real hub, graph and database."""

import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, chdir
from pathlib import Path
from typing import Any

from benchmarks.environment import programs_from
from benchmarks.everyday.cases import ServerName
from benchmarks.everyday.world import World
from packetgate.connectors.sessions import Sessions
from packetgate.deciders.protocols import Deciders
from packetgate.graph.building import build_graph
from packetgate.graph.journal import open_journal
from packetgate.graph.servers import make_hub
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.state.base import new_id
from packetgate.state.errors import InputError
from packetgate.toolsets.servers.config import McpConfig, ServerConfig
from packetgate.toolsets.servers.hub import McpHub

PATIENCE_S = 240.0
"""Maximum wait, in seconds, for servers that must be installed first."""


def server_entry(name: ServerName, world: World) -> dict[str, Any]:
    """Return a server's entry as in a user's mcp.json; the server starts in the world's folder."""
    entries: dict[str, Callable[[], dict[str, Any]]] = {
        "filesystem": lambda: _npx("@modelcontextprotocol/server-filesystem", str(world.root)),
        "git": lambda: _uvx("mcp-server-git", "--repository", str(world.root)),
        "time": lambda: _uvx("mcp-server-time", "--local-timezone", "UTC"),
        "memory": lambda: {
            **_npx("@modelcontextprotocol/server-memory"),
            "env": {"MEMORY_FILE_PATH": str(world.memory)},
        },
        "sqlite": lambda: _uvx("--with", "mcp<2", "mcp-server-sqlite", "--db-path", str(world.database)),
        "fetch": lambda: _uvx("mcp-server-fetch", "--allow-private-ips"),
    }
    return {**entries[name](), "cwd": str(world.root)}


def _npx(*words: str) -> dict[str, Any]:
    return {"command": "npx", "args": ["-y", *words]}


def _uvx(*words: str) -> dict[str, Any]:
    return {"command": "uvx", "args": [*words]}


class OpenServers:
    """A hub that stays open across requests."""

    def __init__(self, hub: McpHub, settings: Settings, deciders: Deciders) -> None:
        self.hub = hub
        self._settings = settings
        self._deciders = deciders

    @asynccontextmanager
    async def sessions(self) -> AsyncIterator[Sessions]:
        """Open sessions with a separate database, so that no request sees another request."""
        home = self._settings.home / new_id()
        settings = self._settings.model_copy(update={"home": home})
        async with open_checkpointer(settings) as checkpointer, open_store(settings) as store:
            journal = open_journal(settings)
            graph = build_graph(self._deciders, self.hub, settings.usage_days, journal)
            yield Sessions(graph.compile(checkpointer=checkpointer, store=store, name="packetgate"))
        shutil.rmtree(home, ignore_errors=True)


@asynccontextmanager
async def open_servers(
    names: Sequence[ServerName], world: World, home: Path, deciders: Deciders
) -> AsyncIterator[OpenServers]:
    """Start these servers in the world's folder as a user does; `deciders` decide in the turns.

    Raises:
        InputError: a server does not start.
    """
    preferences = home / "packetgate.toml"
    preferences.touch()
    settings = Settings(home=home, root=world.root, config=preferences, patience_s=PATIENCE_S)
    entries = tuple(ServerConfig(name, server_entry(name, world)) for name in names if name != "builtin")
    config = McpConfig(entries, builtin="all" if "builtin" in names else "none")
    with chdir(world.root), programs_from():
        async with await make_hub(settings, config) as hub:
            await hub.catalogue()
            problems = [f"{one.name}: {one.problem or one.state}" for one in hub.health() if one.state != "ready"]
            if problems:
                raise InputError(f"some servers did not start: {'; '.join(problems)}")
            yield OpenServers(hub, settings, deciders)
