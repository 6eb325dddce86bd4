"""The exported graph, for LangGraph servers and Studio. It carries no checkpointer: the server brings its own."""

import asyncio
import logging
import weakref
from typing import Any

from langgraph.checkpoint.serde import _msgpack

from packetgate.graph.building import build_graph
from packetgate.graph.composition import deciders_for, make_hub
from packetgate.graph.journal.opening import journal_in
from packetgate.graph.kept import kept_in
from packetgate.graph.pool import model_pool
from packetgate.graph.served import ServedGraph
from packetgate.graph.settings import Settings
from packetgate.state.packet import checkpoint_types
from packetgate.state.routing import ToolResult
from packetgate.state.sections import ServerHealth
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.preferences import load_preferences
from packetgate.tools.servers.config import McpConfig, load_config
from packetgate.tools.servers.hub import McpHub


class ServerTools:
    """A toolbox that opens its hub on first use, one for each event loop: sessions belong to the loop they began in.

    The hub stays open as long as the server runs.
    """

    def __init__(self, settings: Settings, config: McpConfig) -> None:
        self._settings = settings
        self._config = config
        self._hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[McpHub]] = (
            weakref.WeakKeyDictionary()
        )

    async def catalogue(self, *, patient: bool = False) -> Catalogue:
        """Return the tools that are there now."""
        return await (await self._hub()).catalogue(patient=patient)

    @property
    def known(self) -> Catalogue:
        """The tools as last seen."""
        opened = self._opened()
        return opened.known if opened else Catalogue()

    def health(self) -> tuple[ServerHealth, ...]:
        """Return how every server is doing."""
        opened = self._opened()
        return opened.health() if opened else ()

    async def call(self, tool_name: str, params: dict[str, Any], idempotency_key: str = "") -> ToolResult:
        """Call a tool by its canonical name."""
        return await (await self._hub()).call(tool_name, params, idempotency_key)

    async def _hub(self) -> McpHub:
        loop = asyncio.get_running_loop()
        opening = self._hubs.get(loop)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._hubs[loop] = loop.create_task(self._open())
        return await asyncio.shield(opening)

    async def _open(self) -> McpHub:
        hub = await make_hub(self._settings, self._config)
        return await hub.__aenter__()

    def _opened(self) -> McpHub | None:
        task = self._hubs.get(asyncio.get_running_loop())
        return task.result() if task and task.done() and not task.cancelled() and task.exception() is None else None


# A server reads states for itself, and for each run copies the graph without the types that its checkpoints may hold.
_msgpack.SAFE_MSGPACK_TYPES |= frozenset(checkpoint_types())

_settings = Settings()
load_preferences(_settings.preferences_path)  # what is wrong with the file is told at the start, not at the first turn
_config = load_config(_settings.config_path, _settings.root)
for _line in _config.odd:
    logging.getLogger(__name__).warning("%s", _line)
_models = model_pool(_settings)
_kept = kept_in(_settings)
graph = ServedGraph.of(
    build_graph(
        deciders_for(_models, _kept),
        ServerTools(_settings, _config),
        _settings.usage_days,
        _settings.prompt_days,
        journal_in(_settings),
    ).compile(name="packetgate"),
    _kept,
)
