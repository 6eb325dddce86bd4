"""What was done, written down in one place and never changed: claims, calls, and the trail of every turn."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from packetgate.state.base import now

CLAIMED = "claimed"
CALL_MARKED = "call_marked"
"""Leads from the digest of a proxy's call to its newest run."""
STARTED = "call_started"
ENDED = "call_ended"
"""Of calls; those that may change something have a key."""


@dataclass(frozen=True)
class Entry:
    """Something to be written down."""

    event: str
    session_id: str = ""
    packet_id: str = ""
    call_id: str = ""
    detail: Mapping[str, JsonValue] = field(default_factory=dict)
    key: str | None = None
    """What may be written once and never again, by whatever process or history."""
    is_lasting: bool = False
    """Whether it must outlast a loss of power before anything follows from it, as whatever has a key must."""


@dataclass(frozen=True)
class Recorded:
    """What is written down: an entry, its number and its time."""

    seq: int
    at: datetime
    entry: Entry


class Journal(ABC):
    """Where everything is written down, for all sessions of a database."""

    @abstractmethod
    async def record(self, *entries: Entry) -> bool:
        """Write entries down, all or, where the key of one was written before, none; return whether they are."""

    @abstractmethod
    async def of_call(self, packet_id: str, call_id: str) -> tuple[Recorded, ...]:
        """Return what is written down of one call, oldest first."""

    @abstractmethod
    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return what is written down of these events, oldest first."""

    async def claim(self, key: str) -> bool:
        """Return whether this is the first time ever that the key is claimed."""
        return await self.record(Entry(CLAIMED, key=key))


class HeldJournal(Journal):
    """A journal whose first entries are written together with the next: one write to the disk for both."""

    def __init__(self, journal: Journal, *held: Entry) -> None:
        self._journal = journal
        self._held = held

    async def record(self, *entries: Entry) -> bool:
        """Write entries down, after those that are held."""
        written = await self._journal.record(*self._held, *entries)
        self._held = () if written else self._held
        return written

    async def flush(self) -> None:
        """Write down what is still held."""
        if self._held:
            await self.record()

    async def of_call(self, packet_id: str, call_id: str) -> tuple[Recorded, ...]:
        """Return what is written down of one call, oldest first."""
        return await self._journal.of_call(packet_id, call_id)

    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return what is written down of these events, oldest first."""
        return await self._journal.of_events(*events)


class MemoryJournal(Journal):
    """A journal that lasts as long as this process: for a graph whose sessions do not last longer either."""

    def __init__(self) -> None:
        self._rows: list[Recorded] = []
        self._calls: dict[tuple[str, str], list[Recorded]] = {}
        self._keys: set[str] = set()

    async def record(self, *entries: Entry) -> bool:
        """Write entries down."""
        keys = [entry.key for entry in entries if entry.key is not None]
        if self._keys & {*keys}:
            return False
        self._keys.update(keys)
        for entry in entries:
            self._rows.append(Recorded(len(self._rows) + 1, now(), entry))
            self._calls.setdefault((entry.packet_id, entry.call_id), []).append(self._rows[-1])
        return True

    async def of_call(self, packet_id: str, call_id: str) -> tuple[Recorded, ...]:
        """Return what is written down of one call."""
        return tuple(self._calls.get((packet_id, call_id), ()))

    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return what is written down of these events."""
        return tuple(row for row in self._rows if row.entry.event in events)
