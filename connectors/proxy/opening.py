"""Opening what the proxy stands on: servers, journal, store, and the threads that its packets are kept in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from connectors import garbage
from connectors.clients import LOCAL
from connectors.proxy.announcing import Announcer
from connectors.proxy.chain import Chain
from connectors.proxy.config import ProxyConfig
from connectors.proxy.gateway import LIST_PATIENCE_S, Gateway
from connectors.proxy.recording import Recorder
from connectors.sessions import Sessions
from deciders.choosing import reflex_deciders
from graph.building import build_graph
from graph.composition import open_tools
from graph.journal.opening import journal_in
from graph.kept import kept_in
from graph.settings import Settings
from graph.storage import open_checkpointer, open_store
from state.context import RoutingContext
from tools.servers.hub import McpHub
from tools.usage.learned_store import ROOT as LEARNED
from tools.usage.store import prune


@asynccontextmanager
async def open_gateway(
    settings: Settings, config: ProxyConfig, started: RoutingContext, client: str = LOCAL
) -> AsyncIterator[Gateway]:
    """Open a gateway to the configured servers.

    Raises:
        ConfigError, ModelError: something in the settings cannot be used.
    """
    async with (
        open_tools(settings, only_configured=True) as hub,
        gateway_to(hub, settings, config, started, client) as gateway,
    ):
        yield gateway


@asynccontextmanager
async def gateway_to(
    hub: McpHub, settings: Settings, config: ProxyConfig, started: RoutingContext, client: str = LOCAL
) -> AsyncIterator[Gateway]:
    """Open a gateway to a hub's servers; on leaving, what has ended is recorded, and everything is closed.

    Raises:
        ConfigError: the database cannot be used.
    """
    async with open_checkpointer(settings) as checkpointer, open_store(settings) as store:
        if settings.usage_days:
            await prune(store, settings.usage_days)
            await prune(store, settings.usage_days, root=LEARNED)
        journal, kept = journal_in(settings), kept_in(settings)
        graph = build_graph(reflex_deciders(), hub, journal=journal).compile(checkpointer=checkpointer, store=store)
        used = store if settings.usage_days else None
        garbage.seldom()
        async with Recorder(Sessions(graph), journal, used) as recorder, Announcer(hub) as announcer:
            yield Gateway(
                chain=Chain(hub, journal, used),
                config=config,
                started=started,
                recorder=recorder,
                announcer=announcer,
                patience_s=settings.patience_s if "patience_s" in settings.model_fields_set else LIST_PATIENCE_S,
                file_of=kept.file,
                client=client,
            )
