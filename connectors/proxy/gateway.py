"""The proxy's own state: who asks, in which session, what they are shown, and their calls."""

import asyncio
import contextvars
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import anyio
from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_access_token, get_context
from fastmcp.tools.base import ToolResult

from connectors.proxy.asking import (
    ANSWER,
    PendingCalls,
    asking_result,
    elicited,
    is_modern,
    reply_in,
    waits,
    way_to_ask,
)
from connectors.proxy.chain import Chain, Wanted
from connectors.proxy.config import LOCAL, ProxyConfig
from connectors.proxy.listing import is_small, permanent, whole
from connectors.proxy.recording import Recorder
from connectors.proxy.results import FileOf, by_meta_tool, direct
from connectors.proxy.sessions import CHANNEL, ProxySession, SessionBook
from deciders.reflex.reading import access_of
from state.context import RoutingContext
from state.errors import CallRefusedError, PacketgateError
from state.packet import CognitionPacket
from state.sections import Header, PaletteEntry
from tools.catalogue.catalogue import Catalogue
from tools.execution.journal import Entry
from tools.palette.candidates import PaletteRequest
from tools.palette.choice import choose_palette
from tools.policy.rules import denied_outright
from tools.servers.relaying import Relay, relayed_to
from tools.spec.tool_spec import digest_of
from tools.usage.learned_store import read_learned
from tools.usage.learning import Learned, shown_use

Result = TypeVar("Result")
How = Literal["listed", "searched", "named"]
COUNTS: dict[How, float] = {"listed": 1.0, "searched": 1.5, "named": 0.5}
"""What a use of a tool teaches, by how its client came to it."""
FEWEST = 16
"""Tools that a context may list at least; at most half of a catalogue, so that it is a choice."""
MOST_FIXED = 100
PATIENCE_S = 5.0
"""How long a client that connects waits for what the servers say of themselves, and a cancelled call for its server."""
PROCESS = "process"
"""The session of a client that started this process for itself, where its protocol has none."""


@dataclass
class Gateway:
    """What one process of the proxy holds."""

    chain: Chain
    config: ProxyConfig
    started: RoutingContext
    """The settings that it was started with."""
    recorder: Recorder
    file_of: FileOf
    client: str = LOCAL
    """Who asks where nobody says so by a token."""
    book: SessionBook = field(default_factory=SessionBook)
    pending: PendingCalls = field(default_factory=PendingCalls)
    _fixed: dict[tuple[str, str], tuple[PaletteEntry, ...]] = field(default_factory=dict)
    """By client and query, the lists that stay."""
    _opening: set[asyncio.Future[Catalogue]] = field(default_factory=set)

    def client_of_request(self) -> str:
        """Return who asks."""
        token = get_access_token()
        return token.client_id if token else self.client

    def session_of(self, ctx: Context, context_id: str | None = None) -> ProxySession:
        """Return the session of a request: of its context, of its connection, or one of its own.

        Raises:
            ToolError: there is no such context of this client.
        """
        client = self.client_of_request()
        settings = self.config.settings_of(client, self.started)
        if context_id:
            found = self.book.found(context_id, client)
            if found is None:
                raise ToolError(f"there is no context {context_id!r} here, or no more: call set_context for a new one")
            return found
        session = self._session_of_connection(ctx, client, settings)
        context = _context_of_url(ctx)
        if context and not session.is_fixed:
            session.query, session.is_fixed = self.config.query_of(context), True
            session.palette = self._fixed.get((client, session.query), ())
        return session

    def _session_of_connection(self, ctx: Context, client: str, settings: RoutingContext) -> ProxySession:
        if not is_modern(ctx):
            return self.book.of(ctx.session_id, client, settings)
        if ctx.transport == "stdio":
            return self.book.of(PROCESS, client, settings)
        return ProxySession(client, settings)

    async def catalogue(self, session: ProxySession) -> Catalogue:
        """Return the tools that a client may use."""
        return await self.chain.toolbox(session.settings).catalogue()

    def may_use(self, ctx: Context, server: str) -> bool:
        """Whether a client may use what a server has beside tools: where it may use all of its tools."""
        settings = self.config.settings_of(self.client_of_request(), self.started)
        everything = f"{server}.everything"
        rules = [rule for rule in self.chain.hub.known.preferences.policy.rules if rule.is_about(everything, server)]
        return settings.allows_tool(everything) and not denied_outright(rules, CHANNEL)

    async def about(self, ctx: Context | None) -> dict[str, str]:
        """Return what the servers of a client say of themselves, of those that are there by now."""
        if ctx is None:
            return {}
        settings = self.config.settings_of(self.client_of_request(), self.started)
        opening = asyncio.ensure_future(self.chain.toolbox(settings).catalogue())
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        done, _ = await asyncio.wait([opening], timeout=PATIENCE_S)
        catalogue = opening.result() if done else Catalogue()
        return {server: specs[0].server_about for server, specs in catalogue.servers.items() if specs[0].server_about}

    async def listed(self, session: ProxySession, catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
        """Return what stands on a session's list."""
        if await asyncio.to_thread(is_small, catalogue, session.settings.palette_size):
            return whole(catalogue)
        if session.is_fixed and not session.palette:
            session.palette = await self._fixed_list(session, catalogue)
        if is_modern(get_context()) and not session.is_fixed:
            return permanent(catalogue)
        chosen = tuple(entry for entry in session.palette if entry.tool_name in catalogue)
        return chosen or permanent(catalogue)

    async def _fixed_list(self, session: ProxySession, catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
        """Return the list of a context that its client's address names: once chosen, it is the same for all."""
        key = (session.client, session.query)
        if key not in self._fixed:
            self._fixed[key] = await self.palette_for(session.query, session, catalogue)
            while len(self._fixed) > MOST_FIXED:
                del self._fixed[next(iter(self._fixed))]
        return self._fixed[key]

    async def learned(self, session: ProxySession) -> Learned | None:
        """Return what the client's uses have taught."""
        store = self.chain.store
        if store is None:
            return None
        return await read_learned(store, Header(session_id=session.session_id, origin=CHANNEL, person=session.client))

    async def palette_for(self, words: str, session: ProxySession, catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
        """Return the tools for a context, the best first, as a turn's palette is chosen."""
        settings = session.settings
        wanted = PaletteRequest(
            words=words,
            access=access_of(words),
            size=min(settings.palette_size, max(FEWEST, len(catalogue) // 2)),
            token_budget=settings.palette_token_budget,
            recent=session.recent,
            learned=await self.learned(session),
        )
        return (await asyncio.to_thread(choose_palette, wanted, catalogue)).entries

    async def call_listed(self, ctx: Context, name: str, params: dict[str, Any]) -> ToolResult:
        """Call a tool by its own name: one that the client was shown.

        Raises:
            ToolError: it was not, or the call is refused.
        """
        session = self.session_of(ctx)
        catalogue = await self.catalogue(session)
        on_list = {entry.tool_name for entry in await self.listed(session, catalogue)}
        if name not in on_list | session.seen:
            raise ToolError(
                f"{name} is not on your list: call it by call_read_tool or call_changing_tool, or say with set_context "
                "what you want"
            )
        how: How = "listed" if name in on_list else self._how(name, session)
        ended = await self._call(ctx, Wanted(name, params), session, how)
        return ended if isinstance(ended, ToolResult) else await asyncio.to_thread(direct, ended, self.file_of)

    async def call_named(
        self, ctx: Context, name: str, params: dict[str, Any], context_id: str | None, *, only_reads: bool
    ) -> ToolResult:
        """Call any tool that the client may use, by a meta-tool.

        Raises:
            ToolError: the call is refused.
        """
        session = self.session_of(ctx, context_id)
        how = self._how(name, session)
        ended = await self._call(ctx, Wanted(name, params, only_reads=only_reads), session, how)
        return ended if isinstance(ended, ToolResult) else await asyncio.to_thread(by_meta_tool, ended, self.file_of)

    def _how(self, name: str, session: ProxySession) -> How:
        """Return how a client came to a tool: a modern client's context lists what it was told of."""
        if name in {entry.tool_name for entry in session.palette}:
            return "listed"
        return "searched" if name in session.searched else "named"

    async def _call(
        self, ctx: Context, wanted: Wanted, session: ProxySession, how: How
    ) -> CognitionPacket | ToolResult:
        """Have a call made by the one way of all calls; it ends in a packet, or in a question to the client."""
        try:
            decided = await self._decided(ctx, wanted, session)
            if isinstance(decided, ToolResult):
                return decided
            packet: CognitionPacket = decided
            entries: tuple[Entry, ...] = ()
            if not decided.routing.calls[0].status.is_final:
                with relayed_to(_relay_to(ctx)):
                    packet, entries = await _cancelled_once(self.chain.executed(decided))
        except PacketgateError as error:
            raise ToolError(str(error)) from error
        session.took(packet)
        call = packet.routing.calls[0]
        use = shown_use(call, session.query, session.palette, COUNTS[how], packet.header)
        self.recorder.ended(packet, use, entries)
        return packet

    async def _decided(self, ctx: Context, wanted: Wanted, session: ProxySession) -> CognitionPacket | ToolResult:
        """Return the packet of a call with its person's word on it, where it needs one."""
        way = way_to_ask(ctx)
        waiting = self.pending.take(ctx.request_state)
        if waiting is not None:
            reply = reply_in((ctx.input_responses or {}).get(ANSWER), waiting)
            return await self.chain.answered(waiting, reply)
        if way == "nobody":
            return await self._answered_elsewhere(ctx, wanted, session)
        packet = await self.chain.proposed(wanted, session)
        if packet.governance.question is None:
            return packet
        if way == "input_required":
            return asking_result(packet, self.pending.put(packet))
        return await self.chain.answered(packet, await elicited(ctx, packet))

    async def _answered_elsewhere(self, ctx: Context, wanted: Wanted, session: ProxySession) -> CognitionPacket:
        """Return the packet of a call whose client cannot ask; where it needs an answer, it waits beside the client.

        Called again once that is given, the call is the one that it was given for: it was run then.

        Raises:
            CallRefusedError: it waits for an answer.
        """
        stateless = is_modern(ctx) and ctx.transport != "stdio" and not session.query
        scope = session.client if stateless else session.session_id
        key = digest_of([scope, wanted.name, dict(wanted.params)])
        packet = self.pending.parked(key)
        question = packet.governance.question if packet else None
        if packet is None or (question is not None and question.has_lapsed):
            packet = await self.chain.proposed(wanted, session, apart=True)
            if packet.governance.question is None:
                return packet
            await self.recorder.parked(packet)
        else:
            packet = await self.recorder.as_it_stands(packet)
        if not packet.routing.calls[0].status.is_final:
            self.pending.park(key, packet)
            raise CallRefusedError(waits(packet))
        return packet


async def _cancelled_once(work: Coroutine[Any, Any, Result]) -> Result:
    """Return what comes of work that is cancelled once where its request is.

    A request is cancelled again and again until it ends, which would cut off the word to the server behind that it is.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task], timeout=PATIENCE_S)
        raise


def _relay_to(ctx: Context) -> Relay:
    """Return where what a server tells in the middle of a call goes: to the client that made it.

    It arrives in the task that reads from the server, so the request's own context is taken along.
    """
    here = contextvars.copy_context()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        await asyncio.create_task(ctx.report_progress(done, total, message), context=here.copy())

    async def log(text: str, level: Any, logger: str | None) -> None:
        await asyncio.create_task(ctx.log(text, level=level, logger_name=logger), context=here.copy())

    return Relay(progress, log)


def _context_of_url(ctx: Context) -> str:
    """Return the name of the context in a request's address; empty where there is none."""
    request = ctx.request_context.request if ctx.request_context else None
    return str(request.path_params.get("name", "")) if request is not None else ""
