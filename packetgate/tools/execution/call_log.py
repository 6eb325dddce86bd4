"""One call in the journal: what is known of its earlier runs, and what is written down before and after a run."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from pydantic import JsonValue

from packetgate.state.base import now
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.execution.journal import ENDED, STARTED, Entry, Journal, Recorded
from packetgate.tools.spec.tool_spec import ToolSpec, digest_of
from packetgate.tools.text.words import words_in

MARKED = "read_marked"
"""The event that leads from what a call is, by its mark, to the newest run of it."""
ANEW = frozenset("afresh again anew fresh recheck refresh reload repeat reread rerun retry".split())
"""Words that want nothing from the cache; one too many here makes a turn slower, never wrong."""


@dataclass(frozen=True)
class CallLog:
    """The runs of one call, as the journal has them; of one packet and one call id, wherever its history forks."""

    call: ToolCall
    packet: CognitionPacket
    spec: ToolSpec
    approval: str
    """The question whose answer lets it run; empty where nobody had to be asked."""
    journal: Journal
    starts: tuple[Recorded, ...] = ()
    ends: tuple[Recorded, ...] = ()

    async def read(self) -> "CallLog":
        """Return the log with all that is written down of the call."""
        rows = await self.journal.of_call(self.packet.header.packet_id, self.call.call_id)
        starts, ends = (tuple(row for row in rows if row.entry.event == event) for event in (STARTED, ENDED))
        return CallLog(self.call, self.packet, self.spec, self.approval, self.journal, starts, ends)

    @property
    def end(self) -> ToolCall | None:
        """The call as it ended, where it was run with these arguments and this approval."""
        for row in reversed(self.ends):
            detail = row.entry.detail
            if self._identity.items() <= detail.items():
                status = ToolExecutionStatus(str(detail["status"]))
                return self.call.ended(status, ToolResult.model_validate(detail["result"]))
        return None

    @property
    def unfinished(self) -> datetime | None:
        """When the call was last started by a run that never told its end."""
        ended = {row.entry.detail["attempt"] for row in self.ends}
        return next((row.at for row in reversed(self.starts) if row.entry.detail["attempt"] not in ended), None)

    @property
    def idempotency_key(self) -> str:
        """What tells a server that a run is another attempt at the same: of the packet and the call, of no content.

        It changes once the call has ended, since whoever approves it anew wants it done anew.
        """
        return str(UUID(digest_of([self.packet.header.packet_id, self.call.call_id, len(self.ends)])[:32]))

    @cached_property
    def mark(self) -> str:
        """Under what a read is found again: a digest of all that must be the same.

        Empty where nothing is used again: of what is no read, what the user was asked about, and where nobody says how
        long a result holds.
        """
        header, spec, listing = self.packet.header, self.spec, self.spec.listing
        lasts = spec.lasts_s > 0 and header.session_id
        if self.call.risk is not Risk.READ or self.approval or not lasts or listing is None or not listing.holds:
            return ""
        who = (header.session_id, header.origin, header.person)
        return digest_of([*who, listing.id, spec.digest, self.call.params])

    async def still_fresh(self) -> ToolCall | None:
        """Return the call as the newest run of the same read ended, while that holds; None where it must be run.

        It holds no longer once any call has started or ended that may change something, whoever made it.
        """
        if not self.mark:
            return None
        anew = self.packet.governance.settings.fresh or not ANEW.isdisjoint(words_in(self.packet.content.user_words))
        marks = await self.journal.of_call("", self.mark) if not anew else ()
        if not marks or not (run := marks[-1].entry.detail):  # it is empty where its session was forgotten
            return None
        rows = await self.journal.of_call(str(run["packet"]), str(run["call"]))
        ends = (row.entry.detail for row in rows if row.entry.event == ENDED)
        end = next((end for end in ends if end.get("attempt") == run["attempt"]), None)
        if end is None or end["status"] != ToolExecutionStatus.EXECUTED:
            return None
        result = ToolResult.model_validate(end["result"])
        age_s, lasts_s = (now() - marks[-1].at).total_seconds(), self.spec.lasts_s
        whole = not (result.attachments or result.handle or result.truncated)
        if not whole or not 0 <= age_s < min(lasts_s, lasts_s if result.lasts_s is None else result.lasts_s):
            return None
        if await self.journal.changed_since(marks[-1].seq):
            return None
        return self.call.ended(ToolExecutionStatus.EXECUTED, result.aged(age_s))

    async def start(self) -> bool:
        """Write down that the call starts; False where another run of the same call came first."""
        started: dict[str, JsonValue] = {
            "risk": self.call.risk.value,
            "definition": self.spec.digest,
            "server": self.spec.server_digest,
            "idempotency_key": self.idempotency_key,
        }
        header = self.packet.header
        run: dict[str, JsonValue] = {"packet": header.packet_id, "call": self.call.call_id, "attempt": self._attempt}
        marked = [Entry(MARKED, header.session_id, call_id=self.mark, detail=run)] if self.mark else []
        return await self.journal.record(self._entry(STARTED, started, "run"), *marked)

    async def finish(self, end: ToolCall) -> ToolCall:
        """Write down what the call that was started came to, and return that."""
        result = end.result.model_dump(mode="json", exclude_defaults=True) if end.result else {}
        await self.journal.record(self._entry(ENDED, {"status": end.status.value, "result": result}, "end"))
        return end

    @property
    def _attempt(self) -> int:
        return len(self.starts) + 1

    @property
    def _identity(self) -> dict[str, JsonValue]:
        return {"call": digest_of(self.call.params), "approval": self.approval}

    def _entry(self, event: str, detail: dict[str, JsonValue], once: str) -> Entry:
        """Return an entry on this run; of what may change something it has a key, so that it is written once."""
        told = {"tool": self.call.tool_name, "attempt": self._attempt, **self._identity, **detail}
        header, call_id, reads = self.packet.header, self.call.call_id, self.call.risk is Risk.READ
        key = None if reads else f"{once}:{header.packet_id}:{call_id}:{self._attempt}"
        return Entry(event, header.session_id, header.packet_id, call_id, told, key, is_lasting=not reads)


async def cut_off(packet: CognitionPacket, journal: Journal) -> list[tuple[ToolCall, str]]:
    """Return the calls of a packet that may change something and were started, and how each went.

    Nobody was told of them, since the turn was stopped before it went on.
    """
    changing = [call for call in packet.tool_routing.calls if call.risk is not Risk.READ] if packet.tool_routing else []
    allowed = [call for call in changing if call.status is ToolExecutionStatus.APPROVED]
    ends = [(call, await _end_of(call, packet, journal)) for call in allowed]
    return [(call, end) for call, end in ends if end]


async def _end_of(call: ToolCall, packet: CognitionPacket, journal: Journal) -> str:
    """Return what is written down of how a call went; empty where it was never started."""
    rows = await journal.of_call(packet.header.packet_id, call.call_id)
    starts, ends = ([row for row in rows if row.entry.event == event] for event in (STARTED, ENDED))
    if not starts:
        return ""
    ended = {row.entry.detail.get("attempt"): row.entry.detail.get("status") for row in ends}
    status = ended.get(starts[-1].entry.detail.get("attempt"))
    return f"it ended as {status}, and nobody was told" if status else call.in_doubt(starts[-1].at).doubt
