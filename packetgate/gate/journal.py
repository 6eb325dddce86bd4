"""The journal: append-only entries of claims, calls and turns; and the log of one call in it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from uuid import UUID

from pydantic import JsonValue

from packetgate.state.base import now
from packetgate.state.printing import shorten
from packetgate.state.routing import Risk, ToolCall, ToolResult
from packetgate.state.sections import Header
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.spec.tool_spec import ToolSpec, digest_of

CLAIMED = "claimed"
CALL_MARKED = "call_marked"
"""Event that stores the newest run of a change by a proxy client or an agent, under the digest of the call."""
STARTED = "call_started"
ENDED = "call_ended"
READ = "call_read"
"""Event of a read that a client chose and nobody had to approve: its only entry."""
PAUSED = "call_paused"
"""Event of a run that the tool interrupted to ask something: the next run continues with the answer."""
_MAX_READ_CHARS = 500
"""Maximum output characters in the entry of a client's read."""
CALL_REVIEWED = "call_reviewed"
QUESTION_SHOWN = "question_shown"
"""Event of a question at an interrupt, with the digest of its call: a reply counts only for this digest."""
QUESTION_OWNED = "question_owned"
"""Event that names the process that asked a question and waits for the answer, under the question's id."""
ANSWER_RECORDED = "answer_recorded"
"""Event of an answer for the asking process to carry out, under the question's id."""
ANSWER_FAILED = "answer_failed"
"""Event of a recorded answer that could not be used, so that another answer may be recorded."""


@dataclass(frozen=True)
class Entry:
    """An entry to record."""

    event: str
    session_id: str = ""
    packet_id: str = ""
    call_id: str = ""
    detail: Mapping[str, JsonValue] = field(default_factory=dict)
    key: str | None = None
    """At most one entry with a key is recorded, whichever process records it."""
    is_durable: bool = False
    """Whether the entry must be on disk before the call continues; entries with a key always must."""


def entry_for(
    header: Header,
    event: str,
    call_id: str = "",
    detail: Mapping[str, JsonValue] | None = None,
    key: str | None = None,
    *,
    is_durable: bool = False,
) -> Entry:
    """Return the entry of an event in the turn of `header`."""
    return Entry(event, header.session_id, header.packet_id, call_id, detail or {}, key, is_durable)


def read_entry(call: ToolCall, header: Header, request: str) -> Entry:
    """Return the only entry of a client's read: the requester, the request and the outcome."""
    who: dict[str, JsonValue] = {"channel": header.origin, "person": header.person, "request": request}
    result: dict[str, JsonValue] = (
        {"output": shorten(call.result.output, _MAX_READ_CHARS), "error": call.result.error} if call.result else {}
    )
    detail: dict[str, JsonValue] = {
        **who,
        "tool": call.tool_name,
        "params": call.params,
        "status": call.status.value,
        "result": result,
    }
    return entry_for(header, READ, call.call_id, detail)


def turn_opened(header: Header, request: str) -> Entry:
    """Return the entry of a new turn: the requester and the request."""
    return entry_for(
        header, "turn_opened", detail={"channel": header.origin, "person": header.person, "request": request}
    )


@dataclass(frozen=True)
class RecordedEntry:
    """A recorded entry with its number and time."""

    seq: int
    at: datetime
    entry: Entry


class Journal(ABC):
    """The entries of all sessions of a database."""

    @abstractmethod
    async def record(self, *entries: Entry) -> bool:
        """Record all entries, or none if one of their keys is already recorded; return whether they were recorded."""

    @abstractmethod
    async def call_entries(self, packet_id: str, call_id: str) -> tuple[RecordedEntry, ...]:
        """Return the entries of a call, oldest first."""

    @abstractmethod
    async def event_entries(self, *events: str) -> tuple[RecordedEntry, ...]:
        """Return the entries of these events, oldest first."""

    async def claim(self, key: str) -> bool:
        """Return whether this is the first claim of the key."""
        return await self.record(Entry(CLAIMED, key=key))


class BufferedJournal(Journal):
    """A journal that buffers entries, and records them with the next entries in one write to disk."""

    def __init__(self, journal: Journal, *entries: Entry) -> None:
        self._journal = journal
        self._buffer = entries

    async def record(self, *entries: Entry) -> bool:
        """Record the buffered entries and `entries`; return whether they were recorded."""
        if not (self._buffer or entries):
            return True
        written = await self._journal.record(*self._buffer, *entries)
        self._buffer = () if written else self._buffer
        return written

    async def call_entries(self, packet_id: str, call_id: str) -> tuple[RecordedEntry, ...]:
        """Return the entries of a call."""
        return await self._journal.call_entries(packet_id, call_id)

    async def event_entries(self, *events: str) -> tuple[RecordedEntry, ...]:
        """Return the entries of these events."""
        return await self._journal.event_entries(*events)


class MemoryJournal(Journal):
    """A journal in memory; its entries are lost when the process ends."""

    def __init__(self) -> None:
        self._rows: list[RecordedEntry] = []
        self._calls: dict[tuple[str, str], list[RecordedEntry]] = {}
        self._keys: set[str] = set()

    async def record(self, *entries: Entry) -> bool:
        """Record entries in memory."""
        keys = [entry.key for entry in entries if entry.key is not None]
        if self._keys & {*keys}:
            return False
        self._keys.update(keys)
        for entry in entries:
            self._rows.append(RecordedEntry(len(self._rows) + 1, now(), entry))
            self._calls.setdefault((entry.packet_id, entry.call_id), []).append(self._rows[-1])
        return True

    async def call_entries(self, packet_id: str, call_id: str) -> tuple[RecordedEntry, ...]:
        """Return the entries of a call."""
        return tuple(self._calls.get((packet_id, call_id), ()))

    async def event_entries(self, *events: str) -> tuple[RecordedEntry, ...]:
        """Return the entries of these events."""
        return tuple(row for row in self._rows if row.entry.event in events)


@dataclass(frozen=True)
class CallLog:
    """The runs of one call that the journal has recorded."""

    call: ToolCall
    header: Header
    spec: ToolSpec
    approval: str
    """Id of the question whose answer allows the call; empty if no approval was needed."""
    journal: Journal
    attempt: int = 1
    """Number of the next run."""
    idempotency_key: str = ""
    """The key by which a server recognises the retry of an unfinished run. It changes after each recorded end."""
    end: ToolCall | None = None
    """The call with its recorded end for these arguments and this approval; None if no end is recorded."""
    unfinished_start: datetime | None = None
    """The start of the newest run without a recorded end."""

    async def read(self) -> "CallLog":
        """Return the log with the rows of the journal."""
        starts, ends = await _recorded_runs(self.call.call_id, self.header, self.journal)
        finished = [row.entry.detail for row in ends if row.entry.event == ENDED]
        same = [detail for detail in finished if self._identity.items() <= detail.items()]
        over = {row.entry.detail["attempt"] for row in ends}
        unfinished = [row.at for row in starts if row.entry.detail["attempt"] not in over]
        return replace(
            self,
            attempt=len(starts) + 1,
            idempotency_key=str(UUID(digest_of([self.header.packet_id, self.call.call_id, len(finished)])[:32])),
            end=self.call.with_result(
                ToolExecutionStatus(str(same[-1]["status"])), ToolResult.model_validate(same[-1]["result"])
            )
            if same
            else None,
            unfinished_start=unfinished[-1] if unfinished else None,
        )

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

    async def pause(self) -> None:
        """Record that the tool interrupted the run."""
        await self.journal.record(self._entry(PAUSED, "end", status="paused"))

    @cached_property
    def _identity(self) -> dict[str, JsonValue]:
        return {"call": digest_of(self.call.params), "approval": self.approval}

    def _entry(self, event: str, key_prefix: str, **detail: JsonValue) -> Entry:
        call_id, reads = self.call.call_id, self.call.risk is Risk.READ
        key = None if reads else f"{key_prefix}:{self.header.packet_id}:{call_id}:{self.attempt}"
        complete_detail = {"tool": self.call.tool_name, "attempt": self.attempt, **self._identity, **detail}
        return entry_for(self.header, event, call_id, complete_detail, key, is_durable=not reads)


async def interrupted_writes(calls: Iterable[ToolCall], header: Header, journal: Journal) -> list[tuple[ToolCall, str]]:
    """Return the writes and commands that an interrupted turn started, each with a text about its outcome."""
    outcomes = []
    for call in calls:
        if call.risk is Risk.READ or call.status is not ToolExecutionStatus.APPROVED:
            continue
        starts, ends = await _recorded_runs(call.call_id, header, journal)
        if starts:
            ended = {row.entry.detail.get("attempt"): row.entry.detail.get("status") for row in ends}
            status = ended.get(starts[-1].entry.detail.get("attempt"))
            outcome = f"it ended as {status}, but the result was not reported"
            if status == "paused":
                outcome = "it asked a question, which was not answered"
            outcomes.append((call, outcome if status else call.with_unfinished_run(starts[-1].at).unfinished_run_text))
    return outcomes


async def _recorded_runs(
    call_id: str, header: Header, journal: Journal
) -> tuple[tuple[RecordedEntry, ...], tuple[RecordedEntry, ...]]:
    rows = await journal.call_entries(header.packet_id, call_id)
    starts, ends = (tuple(row for row in rows if row.entry.event in events) for events in ({STARTED}, {ENDED, PAUSED}))
    return starts, ends
