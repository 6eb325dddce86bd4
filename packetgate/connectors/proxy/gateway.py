"""The state of the proxy: its clients, their sessions and tool lists, and their calls through the gate."""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_access_token, get_context

from packetgate.connectors.clients import LOCAL_CLIENT, Clients
from packetgate.connectors.proxy.announcing import Announcer
from packetgate.connectors.proxy.client_link import ClientLink, is_sessionless
from packetgate.connectors.proxy.listing import MAX_UPSTREAM, all_entries, is_small, palette_request, permanent_entries
from packetgate.connectors.proxy.recording import Recorder
from packetgate.connectors.proxy.sessions import BoundedDict, ProxySession, SessionRegistry
from packetgate.deciders.first_calls import doubt_first_call
from packetgate.gate.client_labels import ClientLabels
from packetgate.gate.facts import RequestedCall
from packetgate.gate.gate import Gate
from packetgate.gate.proposal import Proposal
from packetgate.graph.records import learned_for
from packetgate.graph.settings import Settings
from packetgate.ranking.choice import choose_palette
from packetgate.ranking.learning import LearnedUses
from packetgate.state.channels import PROXY
from packetgate.state.context import RoutingContext
from packetgate.state.errors import CallRefusedError, PacketgateError
from packetgate.state.origins import SessionLabel, merged_labels
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk
from packetgate.state.sections import Header, PaletteEntry
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import AllowedTools
from packetgate.tools.checks.checking import resolve_tool_name
from packetgate.tools.policy.rules import is_always_denied
from packetgate.tools.spec.descriptions import SEPARATOR, may_be_tool_of
from packetgate.tools.text.result_store import ResultStore
from packetgate.toolsets.servers.hub import McpHub

log = logging.getLogger(__name__)

MAX_PENDING = 1_000
SEARCH_PATIENCE_S = 5.0
"""Seconds that the first context or search waits for starting servers, by default."""
STDIO_SESSION = "stdio"
"""The session of a stdio client whose protocol has no sessions."""


def refusal(reason: str) -> ToolError:
    """Return the error that tells a client why a call is refused. The error is logged only at debug level."""
    return ToolError(reason, log_level=logging.DEBUG)


@dataclass
class Gateway:
    """The state of one proxy process."""

    gate: Gate
    hub: McpHub
    """The connections to the servers."""
    recorder: Recorder
    config: Clients
    context: RoutingContext
    """The settings for calls with which the proxy was started."""
    settings: Settings
    announcer: Announcer
    results: ResultStore
    patience_s: float = SEARCH_PATIENCE_S
    list_patience_s: float = 0.0
    """Seconds that the first list waits for starting servers."""
    client: str = LOCAL_CLIENT
    """The client of requests without a token."""
    sessions: SessionRegistry = field(default_factory=SessionRegistry)
    labels: ClientLabels = field(init=False)
    open_questions: BoundedDict[str, tuple[Proposal, float]] = field(default_factory=lambda: BoundedDict(MAX_PENDING))
    """Calls with an open question, with its time, by request state. A reply removes its entry."""
    asking_calls: BoundedDict[str, ClientLink] = field(default_factory=lambda: BoundedDict(MAX_PENDING))
    """Running calls whose server waits for an answer of the client's user, by request state."""
    parked_calls: BoundedDict[str, Proposal] = field(default_factory=lambda: BoundedDict(MAX_PENDING))
    """Calls whose question is answered outside the client, by a digest of session, tool and arguments."""
    parking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a call is parked, so that equal concurrent calls share one question."""

    _allowed: BoundedDict[tuple[str, ...], tuple[Catalogue, Catalogue]] = field(
        default_factory=lambda: BoundedDict(MAX_PENDING)
    )
    """By the patterns of allowed tools: the servers' tools, and those of them that may be used."""

    def __post_init__(self) -> None:
        self.labels = ClientLabels(self.gate.journal)

    async def load_labels(self, session: ProxySession) -> None:
        """Read the labels of a session's client. Without labels, it is a new conversation: nothing is traced.

        Raises:
            ToolError: the database cannot be read.
        """
        try:
            labels = await self.labels.of(session.client)
        except PacketgateError as error:
            raise ToolError(str(error)) from error
        session.set_labels(labels)

    async def add_labels(self, session: ProxySession, labels: tuple[SessionLabel, ...]) -> None:
        """Record the labels of received results. If the database cannot be written, they apply only in this process."""
        session.set_labels(merged_labels([*session.labels, *labels]))
        try:
            await self.labels.add(session.client, labels)
        except PacketgateError as error:
            log.warning("the labels of client %s were not recorded: %s", session.client, error)

    async def propose(
        self, requested: RequestedCall, session: ProxySession, *, own_session: bool = False, can_ask: bool = True
    ) -> Proposal:
        """Wait for the server of a call, and return the call with the gate's decision.

        Args:
            own_session: the request cannot ask, so a call that may need an answer gets a new session.
            can_ask: whether the client can ask, so that a doubtful read may need approval.

        Raises:
            CallRefusedError: the tool does not exist, an argument is invalid, or the call would change something.
        """
        catalogue = await self._catalogue_for(requested.name, session.settings)
        if requested.name not in catalogue and (reason := self.unavailable_reason(requested.name, session.settings)):
            raise CallRefusedError(reason)
        facts = session.facts(catalogue)
        call, repairs = await self.gate.request(requested, facts)
        if own_session and (call.risk is not Risk.READ or call.is_flagged or catalogue[call.tool_name].rules):
            facts = session.facts(catalogue, own_session=True)
        doubt = partial(doubt_first_call, facts=facts, asks_about_reads=can_ask)
        proposal = await self.gate.propose(
            (call,), facts, corrections=repairs, doubt=None if session.has_results else doubt
        )
        return await self.gate.record(proposal)

    async def answer(self, proposal: Proposal, reply: Any) -> Proposal:
        """Wait for the server of a call, and return the call with the user's decision."""
        return await self.gate.record(await self.gate.answer(await self._for_now(proposal), reply))

    async def run(self, proposal: Proposal) -> Proposal:
        """Run a decided call."""
        return await self.gate.run(await self._for_now(proposal))

    def unavailable_reason(self, name: str, settings: RoutingContext) -> str:
        """Return why a tool's server is not connected; empty if it is, or if the client may not use the tool."""
        for server in self.hub.health():
            own = name.removeprefix(f"{server.name}{SEPARATOR}").removeprefix(f"{server.name}.")
            is_allowed = settings.allows_tool(f"{server.name}.{own}")
            if may_be_tool_of(server.name, name) and server.state != "ready" and is_allowed:
                return f"server {server.name!r} is not connected: {server.problem or 'the server is still starting'}"
        return ""

    async def _for_now(self, proposal: Proposal) -> Proposal:
        """Return a proposal with the current definitions of its tools."""
        catalogue = await self._catalogue_for(proposal.calls[0].tool_name, proposal.facts.settings)
        return replace(proposal, facts=replace(proposal.facts, catalogue=catalogue, offered=frozenset(catalogue)))

    async def _catalogue_for(self, name: str, settings: RoutingContext) -> Catalogue:
        """Wait until the server of a tool has started, or has listed its changed tools, and return all tools."""
        known = resolve_tool_name(name, shown := await self._allowed_tools(settings))
        has_waited = await self.hub.wait_for_servers(
            *([shown[known].server] if known else (server for server in self.hub.names if may_be_tool_of(server, name)))
        )
        return await self._allowed_tools(settings) if has_waited else shown

    async def _allowed_tools(self, settings: RoutingContext) -> Catalogue:
        """Return the tools of the connected servers that a client may use. Starting servers are not awaited."""
        self.hub.maintain_servers()
        catalogue, patterns = await self.hub.current_catalogue(), settings.allowed_tools
        of, allowed = self._allowed.get(patterns, (None, catalogue))
        if of is not catalogue:
            allowed = await asyncio.to_thread(AllowedTools(self.hub, settings, PROXY).restrict, catalogue)
            self._allowed[patterns] = catalogue, allowed
        return allowed

    def request_client(self) -> str:
        """Return the client of the current request."""
        token = get_access_token()
        return token.client_id if token else self.client

    def request_settings(self) -> RoutingContext:
        """Return the settings for the client of the current request."""
        return self.config.client_settings(self.request_client(), self.context)

    def session_of(self, ctx: Context, context_id: str | None = None) -> ProxySession:
        """Return the session of a context id or a connection, or a new session. Raise ToolError for an unknown id."""
        client = self.request_client()
        if context_id:
            session = self.sessions.find(context_id, client)
            if session is None:
                raise refusal(f"unknown or expired context {context_id!r}: call set_context for a new one")
            return session
        params = ctx.session.client_params
        key = ctx.session_id if not is_sessionless(ctx) else STDIO_SESSION if ctx.transport == "stdio" else ""
        return self.sessions.session(key, client, self.request_settings(), params.client_info.name if params else "")

    async def catalogue(self, session: ProxySession, name: str | None = None) -> Catalogue:
        """Return the tools that a client may call, after waiting for starting servers, or only for that of `name`."""
        if name is not None:
            known = await self._allowed_tools(session.settings)
            if not known.exact_name(name) and any(may_be_tool_of(server, name) for server in self.hub.names):
                known = await self._catalogue_for(name, session.settings)
            if known.exact_name(name):
                return known
        await self.hub.wait_until_started(self.patience_s)
        return await self._allowed_tools(session.settings)

    async def listed_catalogue(self, session: ProxySession) -> Catalogue:
        """Return the tools that a client may see in a list; for a starting server, those of its previous start."""
        self.hub.maintain_servers()
        if self.list_patience_s:
            await self.hub.wait_until_started(self.list_patience_s)
        allowed = AllowedTools(self.hub, session.settings, PROXY)
        return await asyncio.to_thread(allowed.restrict, await self.hub.listed_catalogue())

    def may_use_server(self, server: str) -> bool:
        """Whether the current client may use a server's prompts and resources: it must be allowed all tools there."""
        everything = f"{server}.everything"
        rules = [
            rule for rule in self.hub.last_catalogue.preferences.policy.rules if rule.names_tool(everything, server)
        ]
        return self.request_settings().allows_tool(everything) and not is_always_denied(rules, PROXY)

    async def tool_list(self, session: ProxySession, catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
        """Return a session's tool list."""
        if is_small(catalogue, session.settings):
            return catalogue.derived(all_entries)
        chosen = tuple(entry for entry in session.palette if entry.tool_name in catalogue)
        if chosen and not is_sessionless(get_context()):
            return chosen
        return permanent_entries(catalogue, session.client)[:MAX_UPSTREAM]

    async def learned_uses(self, session: ProxySession) -> LearnedUses | None:
        """Return what Packetgate learned from the client's uses; None without a store."""
        if self.recorder.store is None:
            return None
        header = Header(session_id=session.session_id, origin=PROXY, person=session.client)
        try:
            return await learned_for(CognitionPacket(header=header), await self.recorder.store())
        except PacketgateError as error:
            log.warning("what was learned from client %s cannot be read: %s", session.client, error)
            return None

    async def choose_tools(self, words: str, session: ProxySession, catalogue: Catalogue) -> tuple[PaletteEntry, ...]:
        """Return the palette for a context, chosen like a turn's palette, best tools first."""
        learned = await self.learned_uses(session)
        request = palette_request(
            words,
            session.settings,
            catalogue,
            person=session.client,
            recent=session.recent_tools,
            learned=learned,
        )
        return (await asyncio.to_thread(choose_palette, request, catalogue)).entries[:MAX_UPSTREAM]
