"""The journal: append-only entries of claims, calls and turns."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from packetgate.state.base import now

CLAIMED = "claimed"
CALL_MARKED = "call_marked"
"""Event that maps the digest of a proxy call to the newest run of that call."""
STARTED = "call_started"
ENDED = "call_ended"


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
    is_lasting: bool = False
    """Whether the entry must be on disk before the call goes on; an entry with a key always must."""


@dataclass(frozen=True)
class Recorded:
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
    async def of_call(self, packet_id: str, call_id: str) -> tuple[Recorded, ...]:
        """Return the entries of a call, oldest first."""

    @abstractmethod
    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return the entries of these events, oldest first."""

    async def claim(self, key: str) -> bool:
        """Return whether this is the first claim of the key."""
        return await self.record(Entry(CLAIMED, key=key))


class HeldJournal(Journal):
    """A journal that records some entries together with the next ones, in one write to disk."""

    def __init__(self, journal: Journal, *held: Entry) -> None:
        self._journal = journal
        self._held = held

    async def record(self, *entries: Entry) -> bool:
        """Record the held entries together with `entries`; return whether they were recorded."""
        written = await self._journal.record(*self._held, *entries)
        self._held = () if written else self._held
        return written

    async def flush(self) -> None:
        """Record the entries that are still held."""
        if self._held:
            await self.record()

    async def of_call(self, packet_id: str, call_id: str) -> tuple[Recorded, ...]:
        """Return the entries of a call."""
        return await self._journal.of_call(packet_id, call_id)

    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return the entries of these events."""
        return await self._journal.of_events(*events)


class MemoryJournal(Journal):
    """A journal in memory; its entries are lost when the process ends."""

    def __init__(self) -> None:
        self._rows: list[Recorded] = []
        self._calls: dict[tuple[str, str], list[Recorded]] = {}
        self._keys: set[str] = set()

    async def record(self, *entries: Entry) -> bool:
        """Record entries in memory."""
        keys = [entry.key for entry in entries if entry.key is not None]
        if self._keys & {*keys}:
            return False
        self._keys.update(keys)
        for entry in entries:
            self._rows.append(Recorded(len(self._rows) + 1, now(), entry))
            self._calls.setdefault((entry.packet_id, entry.call_id), []).append(self._rows[-1])
        return True

    async def of_call(self, packet_id: str, call_id: str) -> tuple[Recorded, ...]:
        """Return the entries of a call."""
        return tuple(self._calls.get((packet_id, call_id), ()))

    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return the entries of these events."""
        return tuple(row for row in self._rows if row.entry.event in events)
