"""The composition root: models, tools and deciders put together from settings."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from langgraph.graph.state import CompiledStateGraph

from packetgate.deciders.choosing import language_deciders, reflex_deciders, reviewed_by
from packetgate.deciders.protocols import Deciders
from packetgate.graph.building import build_graph
from packetgate.graph.journal.opening import journal_in
from packetgate.graph.kept import kept_in
from packetgate.graph.pool import model_pool
from packetgate.graph.private import private_folder
from packetgate.graph.records.recording import prune_records
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.models.embeddings import open_embeddings
from packetgate.models.pool import ModelPool
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ModelError
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.tools.builtin.sandbox import SandboxSettings
from packetgate.tools.catalogue.preferences import Preferences, load_preferences
from packetgate.tools.ranking.ranking import Meaning
from packetgate.tools.servers.config import McpConfig, load_config
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.servers.opening import open_hub
from packetgate.tools.text.result_store import ResultStore

if TYPE_CHECKING:
    from packetgate.models.model import Model

Graph = CompiledStateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket]


@dataclass(frozen=True)
class OpenGraph:
    """A graph, the servers of its tools, and what makes another graph over the same servers and sessions."""

    graph: Graph
    hub: McpHub
    with_models: Callable[[ModelPool], Graph]


def deciders_for(models: ModelPool, kept: ResultStore | None = None) -> Deciders:
    """Return deciders by model when there is one, by reflex when not; models that see are shown what is `kept`."""
    made = (
        reflex_deciders()
        if models.is_reflex
        else language_deciders(partial(_loaded, models, "lite"), partial(_loaded, models, "prime"), kept)
    )
    return replace(reviewed_by(made, models.reviewer) if models.has_reviewer else made, known_as=models.known_as)


async def _loaded(models: ModelPool, role: Literal["lite", "prime"]) -> "Model":
    model = await models.get(role)
    if model is None:
        raise ModelError(f"no model plays {role!r}: set PACKETGATE_LITE or PACKETGATE_PRIME")
    return model


async def make_hub(settings: Settings, config: McpConfig, *, has_reader: bool = False) -> McpHub:
    """Return the hub of the configured servers, not yet entered.

    Raises:
        ConfigError, ModelError: a server's entry, or the embedding model, cannot be used.
    """
    if config.servers:  # their logs are kept there
        await asyncio.to_thread(private_folder, settings.home)
    embeddings = await asyncio.to_thread(open_embeddings, settings.embeddings) if settings.embeddings else None
    preferences = await asyncio.to_thread(load_preferences, settings.preferences_path)
    return await open_hub(
        config,
        settings.root,
        settings.logs_path,
        embeddings,
        patience_s=settings.patience_s,
        preferences=preferences,
        sandbox=sandbox_settings(preferences, settings),
        kept=kept_in(settings),
        meaning=await asyncio.to_thread(make_meaning, settings),
        listings=settings.listings_path,
        has_reader=has_reader,
    )


def make_meaning(settings: Settings) -> Meaning:
    """Return what compares tools and requests by meaning.

    Raises:
        ModelError: the embedding model cannot be used.
    """
    name = settings.ranking_embeddings
    given = open_embeddings(name, "PACKETGATE_RANKING_EMBEDDINGS") if name else None
    return Meaning(settings.vectors_path, given, name or "")


def sandbox_settings(preferences: Preferences, settings: Settings | None = None) -> SandboxSettings:
    """Return how programs are confined: the environment's settings, if any, override those of the file."""
    network = settings.sandbox_network if settings else None
    return SandboxSettings(
        mode=(settings.sandbox if settings else None) or preferences.sandbox,
        network=preferences.sandbox_network if network is None else network,
        reads=tuple(preferences.sandbox_reads),
        writes=tuple(preferences.sandbox_writes),
    )


@asynccontextmanager
async def open_tools(settings: Settings, *, only_configured: bool = False) -> AsyncIterator[McpHub]:
    """Open the servers alone.

    Args:
        only_configured: Leave out the built-in tools that the configuration does not ask for. Whoever opens the
            servers has a reader of long results of its own.

    Raises:
        ConfigError, ModelError: as `make_hub`.
    """
    config = load_config(settings.config_path, settings.root)
    if only_configured and config.builtin == "reads":
        config = replace(config, builtin="none")
    async with await make_hub(settings, config, has_reader=only_configured) as hub:
        yield hub


@asynccontextmanager
async def open_graph(settings: Settings, models: ModelPool | None = None) -> AsyncIterator[Graph]:
    """Open the graph alone, as `open_graph_and_servers`."""
    async with open_graph_and_servers(settings, models) as opened:
        yield opened.graph


@asynccontextmanager
async def open_graph_and_servers(settings: Settings, models: ModelPool | None = None) -> AsyncIterator[OpenGraph]:
    """Open the graph with its servers, its checkpointer and its store; on leaving, everything is closed.

    `models`: those of the settings, where somebody has them already.

    Raises:
        ConfigError, ModelError: something in the settings cannot be used.
    """
    models = models or model_pool(settings)
    await models.check()
    async with (
        open_tools(settings) as hub,
        open_checkpointer(settings) as checkpointer,
        open_store(settings) as store,
    ):
        await prune_records(store, settings.usage_days, settings.prompt_days)

        def made(models: ModelPool) -> Graph:
            deciders = deciders_for(models, kept_in(settings))
            graph = build_graph(deciders, hub, settings.usage_days, settings.prompt_days, journal_in(settings))
            return graph.compile(checkpointer=checkpointer, store=store, name="packetgate")

        yield OpenGraph(made(models), hub, made)
