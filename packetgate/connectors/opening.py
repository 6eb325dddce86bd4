"""Open the sessions that the settings name."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from packetgate.connectors.process import stopped_by_ctrl_c
from packetgate.connectors.recorded_answers import RecordedAnswers
from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings
from packetgate.models.pool import ModelPool


@asynccontextmanager
async def open_sessions(
    settings: Settings, models: ModelPool | None = None, channel: str = ""
) -> AsyncIterator[Sessions]:
    """Open the sessions of this machine's database, or of PostgreSQL.

    Args:
        models: the models of the settings, if they are already created.
        channel: the kind of a process that keeps running: it runs the answers that other processes record for its
            questions.

    Raises:
        ConfigError, ModelError: a setting cannot be used.
    """
    from packetgate.graph.composition import model_pool, open_graph
    from packetgate.graph.leases import open_leases
    from packetgate.graph.shared_results import result_store
    from packetgate.toolsets.builtin.undo_store import UndoStore

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    async with open_graph(settings, models) as opened, open_leases(settings) as leases:
        with stopped_by_ctrl_c(lambda: loop.call_soon_threadsafe(task.cancel) if task else None):
            stores = (leases, opened.journal, result_store(settings))
            undo = UndoStore(settings.undo_path)
            sessions = Sessions(opened.graph, *stores, opened.hub, undo, opened.deciders.warm)

            async def use_model(name: str) -> None:
                chosen = settings.model_copy(update={"lite": name, "prime": "reflex"}) if name else settings
                pool = model_pool(chosen)
                await pool.check()
                sessions.graph = opened.with_models(pool).graph

            sessions.use_model = use_model
            answers = RecordedAnswers(sessions, opened.journal, leases, channel) if channel else None
            try:
                async with answers.run_in_background() if answers else nullcontext():
                    yield sessions
            finally:
                await sessions.stop()


@asynccontextmanager
async def open_records(settings: Settings) -> AsyncIterator[Sessions]:
    """Open the stored sessions, without models and MCP servers: their turns can be read, not run.

    Raises:
        ConfigError: the database cannot be opened.
    """
    from packetgate.deciders.choosing import reflex_deciders
    from packetgate.graph.building import build_graph
    from packetgate.graph.leases import open_leases
    from packetgate.graph.storage import open_checkpointer
    from packetgate.toolsets.servers.hub import McpHub

    async with open_checkpointer(settings) as checkpointer, open_leases(settings) as leases:
        yield Sessions(build_graph(reflex_deciders(), McpHub([])).compile(checkpointer=checkpointer), leases)
