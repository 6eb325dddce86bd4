"""Read and write the journal entries of one call."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.execution.journal import ENDED, STARTED, Entry, Journal, Recorded
from packetgate.tools.spec.tool_spec import ToolSpec, digest_of


@dataclass(frozen=True)
class CallLog:
    """The recorded runs of a packet's call."""

    call: ToolCall
    packet: CognitionPacket
    spec: ToolSpec
    approval: str
    """The id of the question whose answer allows the call; empty if none was needed."""
    journal: Journal
    starts: tuple[Recorded, ...] = ()
    ends: tuple[Recorded, ...] = ()

    async def read(self) -> "CallLog":
        """Return the log with all recorded runs."""
        starts, ends = await _runs(self.call, self.packet, self.journal)
        return CallLog(self.call, self.packet, self.spec, self.approval, self.journal, starts, ends)

    @property
    def end(self) -> ToolCall | None:
        """The call with its recorded end for these arguments and this approval; None if the call did not run."""
        for row in reversed(self.ends):
            detail = row.entry.detail
            if self._identity.items() <= detail.items():
                status = ToolExecutionStatus(str(detail["status"]))
                return self.call.ended(status, ToolResult.model_validate(detail["result"]))
        return None

    @property
    def unfinished(self) -> datetime | None:
        """The start of the last run without a recorded end."""
        ended = {row.entry.detail["attempt"] for row in self.ends}
        return next((row.at for row in reversed(self.starts) if row.entry.detail["attempt"] not in ended), None)

    @property
    def idempotency_key(self) -> str:
        """The key that tells a server that a run repeats an unfinished one. It changes once the call has ended."""
        return str(UUID(digest_of([self.packet.header.packet_id, self.call.call_id, len(self.ends)])[:32]))

    async def start(self) -> bool:
        """Record the start of a run; return False if another process recorded it first."""
        return await self.journal.record(
            self._entry(
                STARTED,
                "run",
                risk=self.call.risk.value,
                definition=self.spec.digest,
                server=self.spec.server_digest,
                idempotency_key=self.idempotency_key,
            )
        )

    async def finish(self, end: ToolCall) -> None:
        """Record the end of the run."""
        result = end.result.model_dump(mode="json", exclude_defaults=True) if end.result else {}
        await self.journal.record(self._entry(ENDED, "end", status=end.status.value, result=result))

    @property
    def _identity(self) -> dict[str, JsonValue]:
        return {"call": digest_of(self.call.params), "approval": self.approval}

    def _entry(self, event: str, once: str, **detail: JsonValue) -> Entry:
        attempt = len(self.starts) + 1
        header, call_id, reads = self.packet.header, self.call.call_id, self.call.risk is Risk.READ
        key = None if reads else f"{once}:{header.packet_id}:{call_id}:{attempt}"
        full = {"tool": self.call.tool_name, "attempt": attempt, **self._identity, **detail}
        return Entry(event, header.session_id, header.packet_id, call_id, full, key, is_lasting=not reads)


async def interrupted_writes(packet: CognitionPacket, journal: Journal) -> list[tuple[ToolCall, str]]:
    """Return the writes and commands that an interrupted turn started, each with its outcome in words."""
    calls = packet.tool_routing.calls if packet.tool_routing else ()
    approved = [call for call in calls if call.risk is not Risk.READ and call.status is ToolExecutionStatus.APPROVED]
    outcomes = [(call, await _outcome(call, packet, journal)) for call in approved]
    return [(call, outcome) for call, outcome in outcomes if outcome]


async def _outcome(call: ToolCall, packet: CognitionPacket, journal: Journal) -> str:
    starts, ends = await _runs(call, packet, journal)
    if not starts:
        return ""
    ended = {row.entry.detail.get("attempt"): row.entry.detail.get("status") for row in ends}
    status = ended.get(starts[-1].entry.detail.get("attempt"))
    return f"it ended as {status}, but the result was not reported" if status else call.in_doubt(starts[-1].at).doubt


async def _runs(
    call: ToolCall, packet: CognitionPacket, journal: Journal
) -> tuple[tuple[Recorded, ...], tuple[Recorded, ...]]:
    rows = await journal.of_call(packet.header.packet_id, call.call_id)
    starts, ends = (tuple(row for row in rows if row.entry.event == event) for event in (STARTED, ENDED))
    return starts, ends
