"""Opening what the proxy stands on: servers, journal, store, and the threads that its packets are kept in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from packetgate.connectors import garbage
from packetgate.connectors.clients import LOCAL
from packetgate.connectors.proxy.announcing import Announcer
from packetgate.connectors.proxy.chain import Chain
from packetgate.connectors.proxy.config import ProxyConfig
from packetgate.connectors.proxy.gateway import LIST_PATIENCE_S, Gateway
from packetgate.connectors.proxy.recording import Recorder
from packetgate.connectors.proxy.storage import LOCKED_S, QUICK_S, LateJournal, Storage
from packetgate.graph.composition import open_tools
from packetgate.graph.journal.opening import journal_in
from packetgate.graph.kept import kept_in
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.tools.servers.hub import McpHub


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
    journal = journal_in(settings, LOCKED_S)
    garbage.seldom()
    async with (
        Storage(settings, hub, journal) as storage,
        LateJournal(journal_in(settings, QUICK_S), journal) as late,
        Recorder(storage, late) as recorder,
        Announcer(hub) as announcer,
    ):
        yield Gateway(
            chain=Chain.of(hub, journal, late, storage),
            config=config,
            started=started,
            recorder=recorder,
            announcer=announcer,
            patience_s=settings.patience_s if "patience_s" in settings.model_fields_set else LIST_PATIENCE_S,
            kept=kept_in(settings),
            client=client,
        )
