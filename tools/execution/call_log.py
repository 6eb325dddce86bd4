"""One call in the journal: what is known of its earlier runs, and what is written down before and after a run."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from state.packet import CognitionPacket
from state.routing import Risk, ToolCall, ToolResult
from state.transitions import ToolExecutionStatus
from tools.execution.journal import Entry, Journal, Recorded
from tools.spec.tool_spec import ToolSpec, digest_of

STARTED = "call_started"
ENDED = "call_ended"


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

    async def start(self) -> bool:
        """Write down that the call starts; False where another run of the same call came first."""
        once = f"run:{self.packet.header.packet_id}:{self.call.call_id}:{self._attempt}"
        return await self._record(
            STARTED,
            {
                "risk": self.call.risk.value,
                "definition": self.spec.digest,
                "server": self.spec.server_digest,
                "idempotency_key": self.idempotency_key,
            },
            key=None if self.call.risk is Risk.READ else once,
        )

    async def finish(self, end: ToolCall) -> ToolCall:
        """Write down what the call that was started came to, and return that."""
        result = end.result.model_dump(mode="json", exclude_defaults=True) if end.result else {}
        await self._record(ENDED, {"status": end.status.value, "result": result})
        return end

    @property
    def _attempt(self) -> int:
        return len(self.starts) + 1

    @property
    def _identity(self) -> dict[str, JsonValue]:
        return {"call": digest_of(self.call.params), "approval": self.approval}

    async def _record(self, event: str, detail: dict[str, JsonValue], key: str | None = None) -> bool:
        told = {"tool": self.call.tool_name, "attempt": self._attempt, **self._identity, **detail}
        header = self.packet.header
        return await self.journal.record(
            Entry(
                event,
                header.session_id,
                header.packet_id,
                self.call.call_id,
                told,
                key,
                is_lasting=self.call.risk is not Risk.READ,
            )
        )
