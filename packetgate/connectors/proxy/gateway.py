"""The state of the proxy: its clients, their sessions and their tool lists."""

import asyncio
import logging
from dataclasses import dataclass, field

from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_access_token, get_context

from packetgate.connectors.clients import LOCAL, ProxyConfig
from packetgate.connectors.proxy.announcing import Announcer
from packetgate.connectors.proxy.asking import PendingCalls, is_modern
from packetgate.connectors.proxy.chain import Chain
from packetgate.connectors.proxy.listing import is_small, permanent, wanted_by, whole
from packetgate.connectors.proxy.sessions import CHANNEL, Newest, ProxySession, SessionBook
from packetgate.connectors.proxy.storage import Recorder
from packetgate.graph.records import learned_by
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Header, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.palette.choice import choose_palette
from packetgate.tools.policy.rules import denied_outright
from packetgate.tools.text.result_store import ResultStore
from packetgate.tools.usage.learning import Learned

MOST_FIXED = 100
MOST_HANDLES = 1_000
PATIENCE_S = 5.0
"""Seconds that a cancelled call waits for its server."""
ABOUT_PATIENCE_S = 0.5
"""Seconds that a connecting client waits for the stored descriptions of servers."""
LIST_PATIENCE_S = 2.0
"""Seconds that the first list waits for servers without stored tools, unless the settings say otherwise."""
PROCESS = "process"
"""The session of a stdio client whose protocol has no sessions."""


def refusal(why: str) -> ToolError:
    """Return the error that tells a client why a call is refused; it is logged at debug level only."""
    return ToolError(why, log_level=logging.DEBUG)


@dataclass
class Gateway:
    """The state of one proxy process."""

    chain: Chain
    config: ProxyConfig
    started: RoutingContext
    """The settings from its start."""
    recorder: Recorder
    announcer: Announcer
    kept: ResultStore
    """Storage of long results."""
    patience_s: float = LIST_PATIENCE_S
    client: str = LOCAL
    """The client of requests without a token."""
    book: SessionBook = field(default_factory=SessionBook)
    pending: PendingCalls = field(default_factory=PendingCalls)
    _handles: Newest[str, tuple[str, str, str]] = field(default_factory=lambda: Newest(MOST_HANDLES))
    """By handle of a long result: its client, the session that may read it (empty for any), and its storage key."""
    _fixed: Newest[tuple[str, str], tuple[PaletteEntry, ...]] = field(default_factory=lambda: Newest(MOST_FIXED))
    """Fixed lists by client and query."""
    _opening: set[asyncio.Future[Catalogue]] = field(default_factory=set)

    def client_of_request(self) -> str:
        """Return the client of the current request."""
        token = get_access_token()
        return token.client_id if token else self.client

    def settings_of_request(self) -> RoutingContext:
        """Return the settings for the client of the current request."""
        return self.config.settings_of(self.client_of_request(), self.started)

    def session_of(self, ctx: Context, context_id: str | None = None) -> ProxySession:
        """Return the session of a request: by its context id, its connection, or a new one.

        Raises:
            ToolError: there is no such context of this client.
        """
        client, settings = self.client_of_request(), self.settings_of_request()
        if context_id:
            found = self.book.found(context_id, client)
            if found is None:
                raise refusal(f"there is no context {context_id!r} here, or no more: call set_context for a new one")
            return found
        session = self._session_of_connection(ctx, client, settings)
        context = _context_of_url(ctx)
        if context and not session.is_fixed:
            session.query, session.is_fixed = self.config.query_of(context), True
            session.palette = self._fixed.get((client, session.query), ())
        return session

    def _session_of_connection(self, ctx: Context, client: str, settings: RoutingContext) -> ProxySession:
        app = _app_of(ctx)
        if not is_modern(ctx):
            return self.book.of(ctx.session_id, client, settings, app)
        if ctx.transport == "stdio":
            return self.book.of(PROCESS, client, settings, app)
        return self.book.new(client, settings, app)

    async def catalogue(self, session: ProxySession, name: str | None = None) -> Catalogue:
        """Return the tools that a client may see.

        The first call waits a moment for servers without known tools, unless `name` is known already.
        """
        offered = self.chain.offered(session.settings)
        if name is not None and (known := await offered.catalogue()).exactly(name):
            return known
        self.chain.hub.tend()
        await self.chain.hub.introduced(self.patience_s)
        return await offered.catalogue()

    def keep_handle(self, ctx: Context, session: ProxySession, packet: CognitionPacket) -> None:
        """Remember the owner of a long result."""
        result = packet.routing.calls[0].result
        if result is None or not result.handle:
            return
        is_single = is_modern(ctx) and session.session_id not in {one.session_id for one in self.book}
        owner = "" if is_single else session.session_id
        self._handles[result.handle] = session.client, owner, packet.header.session_id

    def kept_for(self, handle: str, session: ProxySession) -> str:
        """Return the storage key of a long result; empty if this session may not read it."""
        client, owner, kept_by = self._handles.get(handle, ("", "", ""))
        return kept_by if client == session.client and owner in {"", session.session_id} else ""

    def may_use(self, ctx: Context, server: str) -> bool:
        """Whether a client may use a server's prompts and resources: only if it may use all of its tools."""
        settings = self.settings_of_request()
        everything = f"{server}.everything"
        rules = [rule for rule in self.chain.hub.known.preferences.policy.rules if rule.is_about(everything, server)]
        return settings.allows_tool(everything) and not denied_outright(rules, CHANNEL)

    async def about(self, ctx: Context | None) -> dict[str, str]:
        """Return the self-descriptions of the client's servers that are known by now."""
        if ctx is None:
            return {}
        opening = asyncio.ensure_future(self.chain.offered(self.settings_of_request()).catalogue())
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        done, _ = await asyncio.wait([opening], timeout=ABOUT_PATIENCE_S)
        catalogue = opening.result() if done else Catalogue()
        return {server: specs[0].server_about for server, specs in catalogue.servers.items() if specs[0].server_about}

    async def listed(self, session: ProxySession, catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
        """Return a session's tool list."""
        if await asyncio.to_thread(is_small, catalogue, session.settings.palette_size):
            return whole(catalogue)
        if session.is_fixed and not session.palette:
            session.palette = await self._fixed_list(session, catalogue)
        if is_modern(get_context()) and not session.is_fixed:
            return permanent(catalogue, session.client)
        chosen = tuple(entry for entry in session.palette if entry.tool_name in catalogue)
        return chosen or permanent(catalogue, session.client)

    async def _fixed_list(self, session: ProxySession, catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
        key = (session.client, session.query)
        if key not in self._fixed:
            self._fixed[key] = await self.palette_for(session.query, session, catalogue)
        return self._fixed[key]

    async def learned(self, session: ProxySession) -> Learned | None:
        """Return what was learned from the client's uses; None without a store."""
        header = Header(session_id=session.session_id, origin=CHANNEL, person=session.client)
        return await learned_by(CognitionPacket(header=header), self.chain.store)

    async def palette_for(self, words: str, session: ProxySession, catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
        """Choose the tools for a context as for a turn's palette, best first."""
        learned = await self.learned(session)
        how = {"person": session.client, "recent": session.recent, "learned": learned}
        wanted = wanted_by(words, session.settings, catalogue, **how)
        return (await asyncio.to_thread(choose_palette, wanted, catalogue)).entries


def _app_of(ctx: Context) -> str:
    params = ctx.session.client_params
    return params.client_info.name if params else ""


def _context_of_url(ctx: Context) -> str:
    request = ctx.request_context.request if ctx.request_context else None
    return str(request.path_params.get("name", "")) if request is not None else ""
