"""What the proxy knows of each client's session: its context, its list, what it used and read.

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
"""Earlier calls whose outputs a session knows, for where later values come from."""
MAX_OUTPUT_CHARS = 200_000
"""Of these outputs together."""


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
    """The newest calls that have a result, oldest first, within bounds."""

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
    """What the client said it is about: of all that it sends, this alone counts as the user's words."""
    palette: tuple[PaletteEntry, ...] = ()
    """Chosen for that; empty without a context."""
    is_fixed: bool = False
    """Whether its list stays what it is: the address that its client uses names the context."""
    searched: set[str] = field(default_factory=set)
    """Tools that a search or a description has shown."""
    recent: tuple[str, ...] = ()
    own: Outputs = field(default_factory=Outputs)
    of_client: Outputs = field(default_factory=Outputs)
    """Of all sessions of the client."""
    parent: str | None = None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The session's own calls."""
        return self.own.calls

    @property
    def sources(self) -> tuple[ToolCall, ...]:
        """The calls in whose outputs the values of a call are looked for: those of all sessions of the client."""
        own = {call.call_id for call in self.own.calls}
        return (*(call for call in self.of_client.calls if call.call_id not in own), *self.own.calls)

    @property
    def seen(self) -> frozenset[str]:
        """The tools that its client was shown, by whatever way."""
        return frozenset({entry.tool_name for entry in self.palette} | self.searched)

    def chose(self, query: str, palette: tuple[PaletteEntry, ...]) -> None:
        """Take another context in place of the last."""
        self.query, self.palette = query, palette

    def opened(self, entry: PaletteEntry, *, apart: bool = False) -> CognitionPacket:
        """Return the packet of one more call: its palette is the one tool that it is of.

        `apart`: in a thread of its own, where it can wait for an answer beside the session's other calls.
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
        """Remember a text that is no call's result, such as a resource's: later values may come from it."""
        result = ToolResult(success=True, output=text[:MAX_OUTPUT_CHARS])
        self._keep(ToolCall(tool_name=source, params={"uri": source}, risk=Risk.READ, result=result))

    def remember_call(self, packet: CognitionPacket) -> None:
        """Remember a call that has come to its end."""
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
        """Return a session that is not kept. `app` tells programs of one client apart."""
        outputs = self._outputs[client, app] = self._outputs.get((client, app)) or Outputs()
        return ProxySession(client, settings, of_client=outputs)

    def of(self, key: str, client: str, settings: RoutingContext, app: str = "") -> ProxySession:
        """Return the session of that key, a new one where there is none."""
        session = self._sessions[key] = self.found(key, client) or self.new(client, settings, app)
        return session

    def opened(self, beside: ProxySession) -> tuple[str, ProxySession]:
        """Return a new session of the same client, and the id by which it finds it again; nobody else can guess it."""
        key = f"ctx_{token_urlsafe(18)}"
        session = self._sessions[key] = ProxySession(beside.client, beside.settings, of_client=beside.of_client)
        return key, session

    def found(self, key: str, client: str) -> ProxySession | None:
        """Return the session of that key if it is the client's own."""
        session = self._sessions.get(key)
        if session is None or session.client != client:
            return None
        self._sessions[key] = session
        return session

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ProxySession]:
        return iter(self._sessions.values())
