"""Sessions of the proxy's clients: their context, tool list and earlier outputs.

Sessions of one client share one thing: the outputs that the values of a call are traced to. Otherwise a client would
switch tracing off when it opens another session or leaves out its `context_id`.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import TypeVar

from packetgate.state.base import new_id
from packetgate.state.channels import PROXY
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import Content, Context, Governance, Header, PacketState, PaletteEntry, Status
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.palette.choice import with_recent

CHANNEL = PROXY
MAX_SESSIONS = 1_000
MAX_CALLS = 20
"""Most earlier calls whose outputs are kept to trace later values."""
MAX_OUTPUT_CHARS = 200_000
"""Most characters of these outputs together."""


K = TypeVar("K")
V = TypeVar("V")


class Newest(OrderedDict[K, V]):
    """A dict of at most `most` entries: the one that was set longest ago is dropped."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)


@dataclass
class Outputs:
    """The newest calls with a result, oldest first, within limits."""

    calls: tuple[ToolCall, ...] = ()

    def keep(self, *calls: ToolCall) -> None:
        """Remember calls, and forget the oldest where there are too many."""
        self.calls = tuple(reversed([*_within_bounds([*self.calls, *calls])]))


@dataclass
class ProxySession:
    """One client's session, or one context of a client whose protocol has no sessions."""

    client: str
    settings: RoutingContext
    session_id: str = field(default_factory=lambda: f"proxy-{new_id()[:12]}")
    query: str = ""
    """The context that the client set: the only text that counts as the user's words."""
    palette: tuple[PaletteEntry, ...] = ()
    """The tools chosen for the context; empty without one."""
    is_fixed: bool = False
    """Whether the list is fixed because the client's URL names the context."""
    searched: set[str] = field(default_factory=set)
    """Tools that a search or description returned."""
    recent: tuple[str, ...] = ()
    own: Outputs = field(default_factory=Outputs)
    of_client: Outputs = field(default_factory=Outputs)
    """Outputs of all sessions of the client."""
    parent: str | None = None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The session's own calls."""
        return self.own.calls

    @property
    def sources(self) -> tuple[ToolCall, ...]:
        """The calls whose outputs a call's values are traced to: those of all sessions of the client."""
        own = {call.call_id for call in self.own.calls}
        return (*(call for call in self.of_client.calls if call.call_id not in own), *self.own.calls)

    @property
    def seen(self) -> frozenset[str]:
        """The tools that the client was shown in any way."""
        return frozenset({entry.tool_name for entry in self.palette} | self.searched)

    def chose(self, query: str, palette: tuple[PaletteEntry, ...]) -> None:
        """Replace the context."""
        self.query, self.palette = query, palette

    def opened(self, entry: PaletteEntry, *, apart: bool = False) -> CognitionPacket:
        """Return the packet of a new call; its palette is the one tool.

        `apart`: in a thread of its own, where it can wait for approval beside other calls.
        """
        session_id = f"{self.session_id}-{new_id()[:6]}" if apart else self.session_id
        return CognitionPacket(
            header=Header(session_id=session_id, parent_packet_id=self.parent, origin=CHANNEL, person=self.client),
            context=Context(palette=(entry,), recent_tools=self.recent),
            content=Content(original_prompt=self.query),
            governance=Governance(dry_run=self.settings.is_dry_run, settings=self.settings),
            status=Status(state=PacketState.PROCESSING),
        )

    def remember_text(self, source: str, text: str) -> None:
        """Remember a text that is no call's result, such as a resource, for tracing later values."""
        result = ToolResult(success=True, output=text[:MAX_OUTPUT_CHARS])
        self._keep(ToolCall(tool_name=source, params={"uri": source}, risk=Risk.READ, result=result))

    def remember_call(self, packet: CognitionPacket) -> None:
        """Remember an ended call."""
        self.parent = packet.header.packet_id
        calls = packet.routing.calls
        used = [call.tool_name for call in calls if call.status is ToolExecutionStatus.EXECUTED]
        self.recent = with_recent(self.recent, used)
        self._keep(*(call for call in calls if call.result is not None))

    def _keep(self, *calls: ToolCall) -> None:
        self.own.keep(*calls)
        self.of_client.keep(*calls)


def _within_bounds(calls: Sequence[ToolCall]) -> Iterator[ToolCall]:
    room = MAX_OUTPUT_CHARS
    for call in list(reversed(calls))[:MAX_CALLS]:
        room -= len(call.result.output) if call.result else 0
        if room < 0:
            return
        yield call


class SessionBook:
    """The sessions of a process, by key; of too many, the one that was longest unused is forgotten."""

    def __init__(self, most: int = MAX_SESSIONS) -> None:
        self._sessions: Newest[str, ProxySession] = Newest(most)
        self._outputs: Newest[tuple[str, str], Outputs] = Newest(most)

    def new(self, client: str, settings: RoutingContext, app: str = "") -> ProxySession:
        """Return a session that is not stored. `app` distinguishes programs of one client."""
        outputs = self._outputs[client, app] = self._outputs.get((client, app)) or Outputs()
        return ProxySession(client, settings, of_client=outputs)

    def of(self, key: str, client: str, settings: RoutingContext, app: str = "") -> ProxySession:
        """Return the session of a key, creating it if necessary."""
        session = self._sessions[key] = self.found(key, client) or self.new(client, settings, app)
        return session

    def opened(self, beside: ProxySession) -> tuple[str, ProxySession]:
        """Return the unguessable id of a new session of the same client, and the session."""
        key = f"ctx_{token_urlsafe(18)}"
        session = self._sessions[key] = ProxySession(beside.client, beside.settings, of_client=beside.of_client)
        return key, session

    def found(self, key: str, client: str) -> ProxySession | None:
        """Return the session of a key if it belongs to the client."""
        session = self._sessions.get(key)
        if session is None or session.client != client:
            return None
        self._sessions[key] = session
        return session

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ProxySession]:
        return iter(self._sessions.values())
