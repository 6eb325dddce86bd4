"""Open the sessions that the settings name."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from packetgate.connectors.process import stopped_by_ctrl_c
from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings
from packetgate.models.pool import ModelPool


@asynccontextmanager
async def open_sessions(settings: Settings, models: ModelPool | None = None) -> AsyncIterator[Sessions]:
    """Open the sessions of this machine's database, or of PostgreSQL.

    `models`: the models of the settings, if they are already created.

    Raises:
        ConfigError, ModelError: a setting cannot be used.
    """
    from packetgate.graph.composition import open_graph
    from packetgate.graph.leases import open_leases
    from packetgate.graph.shared_results import result_store
    from packetgate.toolsets.builtin.undo_store import UndoStore

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    async with open_graph(settings, models) as opened, open_leases(settings) as leases:
        with stopped_by_ctrl_c(lambda: loop.call_soon_threadsafe(task.cancel) if task else None):
            stores = (leases, opened.journal, result_store(settings))
            undo = UndoStore(settings.undo_path)
            sessions = Sessions(opened.graph, *stores, opened.hub, undo, opened.deciders.warm)
            try:
                yield sessions
            finally:
                await sessions.stop()
