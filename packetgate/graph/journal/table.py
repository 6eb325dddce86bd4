"""The journal's table, in the database that keeps the sessions.

A LangGraph server keeps its sessions itself, and its store cannot write a row once. There the journal is in the
database of Packetgate's own settings, which several such servers must share.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence

from packetgate.graph.journal.chain import Head, Row
from packetgate.tools.execution.journal import Journal, Recorded

PAGE = 500
"""Rows read at once."""

TABLES = """
CREATE TABLE IF NOT EXISTS journal (
    seq BIGINT PRIMARY KEY, at TEXT NOT NULL, session_id TEXT NOT NULL, packet_id TEXT NOT NULL, call_id TEXT NOT NULL,
    event TEXT NOT NULL, key TEXT UNIQUE, digest TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL, detail TEXT
);
CREATE INDEX IF NOT EXISTS journal_calls ON journal (packet_id, call_id);
CREATE INDEX IF NOT EXISTS journal_events ON journal (event, seq);
CREATE INDEX IF NOT EXISTS journal_sessions ON journal (session_id, seq);
CREATE TABLE IF NOT EXISTS journal_head (one INTEGER PRIMARY KEY CHECK (one = 1), seq BIGINT NOT NULL, hash TEXT);
"""
_KEPT = [name for name in Row._fields if name != "detail"]
OTHER = " OR ".join(f"NEW.{name} IS DISTINCT FROM OLD.{name}" for name in _KEPT)
"""Whether a change is of anything but the detail, which alone can be erased."""
REFUSAL = "the journal is append-only"
HEAD = "SELECT seq, hash FROM journal_head"
TAKEN = "SELECT 1 FROM journal WHERE key = ?"
INSERT = "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
MOVE = (
    "INSERT INTO journal_head VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, hash = excluded.hash"
)
ERASE = "UPDATE journal SET detail = NULL WHERE session_id = ? AND event <> ? AND detail IS NOT NULL"
_OF_CALL = "SELECT * FROM journal WHERE packet_id = ? AND call_id = ? ORDER BY seq"
_OF_EVENTS = "SELECT * FROM journal WHERE event IN ({}) ORDER BY seq"
_OF_ALL = "SELECT * FROM journal WHERE seq > ? ORDER BY seq LIMIT ?"
_OF_SESSION = "SELECT * FROM journal WHERE seq > ? AND session_id = ? ORDER BY seq LIMIT ?"


class DatabaseJournal(Journal):
    """A journal in a table. It is opened for each use: a turn writes a handful of times."""

    async def of_call(self, packet_id: str, call_id: str) -> tuple[Recorded, ...]:
        """Return what is written down of one call, oldest first."""
        rows = await self._read(_OF_CALL, (packet_id, call_id))
        return tuple(row.recorded for row in rows)

    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return what is written down of these events, oldest first."""
        rows = await self._read(_OF_EVENTS.format(", ".join("?" * len(events))), events)
        return tuple(row.recorded for row in rows)

    async def rows(self, session_id: str | None = None) -> AsyncIterator[Row]:
        """Yield the rows, oldest first; of one session, where it is named."""
        sql, named = (_OF_ALL, ()) if session_id is None else (_OF_SESSION, (session_id,))
        last = 0
        while rows := await self._read(sql, (last, *named, PAGE)):
            for row in rows:
                yield row
            last = rows[-1].seq

    @abstractmethod
    async def forget(self, session_id: str) -> None:
        """Erase the details of a session's rows, and record that, in one transaction."""

    @abstractmethod
    async def head(self) -> Head:
        """Return where the journal ends, as it is kept beside the rows."""

    @abstractmethod
    async def _read(self, sql: str, values: Sequence[object]) -> list[Row]: ...
