"""Past turns that ran on the real graph, stored in a SQLite file."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.confirmed_reads import confirming_preferences
from support.graphs import Session
from support.notebook import Notebook

from packetgate.connectors.sessions import Sessions, SessionState
from packetgate.connectors.trace import find_packet
from packetgate.deciders.protocols import Deciders
from packetgate.graph.building import build_graph
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer
from packetgate.state.context import RoutingContext
from packetgate.toolsets.servers.hub import McpHub


@dataclass
class Kept:
    """A conversation and the sessions in which it is found."""

    talk: Session
    sessions: Sessions

    async def find(self, wanted: str, session: str | None = None) -> SessionState:
        """Return a past packet."""
        return await find_packet(self.sessions, wanted, session)


@asynccontextmanager
async def keeping(home: Path, deciders: Deciders, notebook: Notebook, **context: Any) -> AsyncIterator[Kept]:
    """Open a conversation; `context` are fields of `RoutingContext`."""
    settings = Settings(home=home)
    async with (
        McpHub([notebook.connection()], preferences=confirming_preferences()) as hub,
        open_checkpointer(settings) as checkpointer,
    ):
        journal = open_journal(settings)
        graph = build_graph(deciders, hub, journal=journal).compile(checkpointer=checkpointer)
        yield Kept(Session(graph, RoutingContext(**context)), Sessions(graph, journal=journal))
