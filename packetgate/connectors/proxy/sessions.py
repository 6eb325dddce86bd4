"""Sessions of the proxy's clients: their context, tool list and earlier results.

Sessions of one client share the results that a call's values are traced to. Otherwise a client could avoid tracing by
opening another session or omitting its `context_id`.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import TypeVar

from packetgate.gate.facts import Facts
from packetgate.gate.proposal import Proposal
from packetgate.ranking.choice import recent_after
from packetgate.state.base import new_id
from packetgate.state.channels import PROXY
from packetgate.state.context import RoutingContext
from packetgate.state.origins import SessionLabel, merged_labels
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult, ToolRouting
from packetgate.state.sections import (
    Content,
    Context,
    Governance,
    Header,
    PacketState,
    PaletteEntry,
    Reasoning,
    Reflection,
    Status,
)
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue

MAX_CLIENT_SESSIONS = 1_000
MAX_TRACED_CALLS = 20
MAX_TRACED_CHARS = 200_000
MAX_HANDLES = 100
"""Maximum number of long results of one client that `read_result` can continue."""

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """A dict of at most `limit` entries: the least recently set entry is evicted."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._limit:
            self.popitem(last=False)


@dataclass
class EarlierResults:
    """The newest calls with a result, oldest first, and the long results that `read_result` can continue."""

    calls: tuple[ToolCall, ...] = ()
    is_labelled: bool = False
    """Whether the client had a label at the newest call."""
    storage_keys: BoundedDict[str, str] = field(default_factory=lambda: BoundedDict(MAX_HANDLES))
    """Storage keys of long results, by handle."""

    def add(self, call: ToolCall) -> None:
        """Remember a call, and forget the oldest calls beyond the limits."""
        calls: list[ToolCall] = []
        chars_left = MAX_TRACED_CHARS
        for earlier in (call, *reversed(self.calls)):
            chars_left -= len(earlier.result.output) if earlier.result else 0
            if chars_left < 0 or len(calls) == MAX_TRACED_CALLS:
                break
            calls.insert(0, earlier)
        self.calls = tuple(calls)


@dataclass
class ProxySession:
    """One client's session, or one context of a client whose protocol has no sessions."""

    client: str
    settings: RoutingContext
    shared_results: EarlierResults
    """Results of all sessions of the client."""
    is_stored: bool = True
    """Whether later requests can find the session."""
    session_id: str = field(default_factory=lambda: f"proxy-{new_id()[:12]}")
    query: str = ""
    """The context that the client set: the only text that counts as the user's words."""
    palette: tuple[PaletteEntry, ...] = ()
    """The tools chosen for the context; empty without a context."""
    found_tools: set[str] = field(default_factory=set)
    """Tools that a search or description returned."""
    listed_tools: dict[str, str] = field(default_factory=dict)
    """Digests of the tools that the client listed, each from its last list with the tool, by canonical name."""
    recent_tools: tuple[str, ...] = ()
    own_results: EarlierResults = field(default_factory=EarlierResults)
    parent_packet_id: str | None = None
    labels: tuple[SessionLabel, ...] = ()
    """The client's labels at the newest call; see `ClientLabels`."""
    has_own_words: bool = True
    """Whether the context was set before the client read any output, so that no output suggested it."""
    has_results: bool = False
    """Whether the client received a result since the context was set."""

    @property
    def sources(self) -> tuple[ToolCall, ...]:
        """Calls of all sessions of the client. Argument values are traced to the results of these calls."""
        own = self.own_results.calls
        own_ids = {call.call_id for call in own}
        return (*(call for call in self.shared_results.calls if call.call_id not in own_ids), *own)

    @property
    def shown_tools(self) -> frozenset[str]:
        """The tools that the client was shown in any way."""
        return frozenset({entry.tool_name for entry in self.palette} | self.found_tools | self.listed_tools.keys())

    def facts(self, catalogue: Catalogue, *, own_session: bool = False) -> Facts:
        """Return the facts of a new call. With `own_session`, it can wait in a new session."""
        session_id = f"{self.session_id}-{new_id()[:6]}" if own_session else self.session_id
        sources, held = self.sources, {label.label for label in self.labels}
        results = (label for call in sources if not held.issuperset(call.label_kinds) for label in call.labels)
        return Facts(
            header=Header(
                session_id=session_id, parent_packet_id=self.parent_packet_id, origin=PROXY, person=self.client
            ),
            catalogue=catalogue,
            offered=frozenset(catalogue),
            settings=self.settings,
            words=self.query,
            are_user_words=self.has_own_words,
            earlier=sources,
            labels=merged_labels([*self.labels, *results]),
            renames_calls=True,
        )

    def packet(self, proposal: Proposal) -> CognitionPacket:
        """Return the packet of a call, for the record and for a question that another process answers."""
        facts, question = proposal.facts, proposal.question
        entries = (
            PaletteEntry(tool_name=call.tool_name, detail="full", reason="ranked", risk=call.risk)
            for call in proposal.calls
        )
        state = PacketState.AWAITING_USER if question else PacketState.COMPLETED
        summary = "; ".join(f"{call.tool_name}: {call.status}, {call.review_reasoning}" for call in proposal.calls)
        return CognitionPacket(
            header=facts.header,
            context=Context(palette=tuple(entries), recent_tools=self.recent_tools, labels=self.labels),
            content=Content(original_prompt=facts.words),
            reasoning=Reasoning().with_reflections(Reflection(step="proxy", summary=summary)),
            governance=Governance(
                dry_run=facts.settings.is_dry_run,
                settings=facts.settings,
                approvals=proposal.approvals,
                question=question,
            ),
            tool_routing=ToolRouting(max_reinjections=1, corrections=proposal.corrections).with_calls(
                proposal.calls, len(proposal.calls)
            ),
            status=Status(state=state, next_steps=("ask_user",) if question else ()),
        )

    def remember_text(self, source: str, text: str) -> ToolCall:
        """Remember a text that is not a call's result, such as a resource; return it as a read call."""
        result = ToolResult(success=True, output=text[:MAX_TRACED_CHARS])
        call = ToolCall(tool_name=source, params={"uri": source}, risk=Risk.READ, result=result)
        self._remember(call)
        return call

    def set_labels(self, labels: tuple[SessionLabel, ...]) -> None:
        """Set the labels. Once there are none, forget the results to which values were traced."""
        for results in (self.own_results, self.shared_results):
            results.calls = results.calls if labels or not results.is_labelled else ()
            results.is_labelled = bool(labels)
        self.labels = labels

    def remember_call(self, proposal: Proposal) -> None:
        """Remember an ended call."""
        header, call = proposal.facts.header, proposal.calls[0]
        self.parent_packet_id = header.packet_id
        if call.status is ToolExecutionStatus.EXECUTED:
            self.recent_tools = recent_after(self.recent_tools, [call.tool_name])
        if call.result is None:
            return
        self._remember(call)
        if call.result.handle:
            readable_by = self.own_results if self.is_stored else self.shared_results
            readable_by.storage_keys[call.result.handle] = header.session_id

    def _remember(self, call: ToolCall) -> None:
        self.has_results = True
        self.own_results.add(call)
        self.shared_results.add(call)

    def storage_key(self, handle: str) -> str:
        """Return the storage key of a long result; empty if this session may not read it."""
        return self.own_results.storage_keys.get(handle) or self.shared_results.storage_keys.get(handle, "")


class SessionRegistry:
    """The sessions of a process; beyond the limit, the least recently used session is evicted."""

    def __init__(self, limit: int = MAX_CLIENT_SESSIONS) -> None:
        self.sessions: BoundedDict[str, ProxySession] = BoundedDict(limit)
        self._shared: BoundedDict[tuple[str, str], EarlierResults] = BoundedDict(limit)

    def session(self, key: str, client: str, settings: RoutingContext, app: str = "") -> ProxySession:
        """Return the session of a key, or a new one; without a key it is not stored. `app` distinguishes programs."""
        known = self.find(key, client)
        if known is not None:
            return known
        shared_results = self._shared[client, app] = self._shared.get((client, app)) or EarlierResults()
        session = ProxySession(client, settings, shared_results, is_stored=bool(key))
        if key:
            self.sessions[key] = session
        return session

    def open_context(self, session: ProxySession) -> tuple[str, ProxySession]:
        """Return the id of a new session of the same client, and the session. Nobody can guess the id."""
        key = f"ctx_{token_urlsafe(18)}"
        opened = self.sessions[key] = ProxySession(session.client, session.settings, session.shared_results)
        return key, opened

    def find(self, key: str, client: str) -> ProxySession | None:
        """Return the session of a key if it belongs to the client."""
        session = self.sessions.get(key)
        if session is None or session.client != client:
            return None
        self.sessions[key] = session
        return session
