"""The journal in the database that stores the sessions, SQLite or PostgreSQL: append-only rows, chained by hashes.

A row's hash covers the hash of the previous row and the digest of its own detail, but not the detail itself. So a
detail can be erased when its session is forgotten, and the chain stays valid. Forgetting a session appends a row, which
explains the erased details before it.

LangGraph servers store the sessions themselves, and their store cannot guarantee that a row is written once. There, the
journal is in the database of Packetgate's own settings, which all servers must share.
"""

import asyncio
import hashlib
import json
import os
import secrets
import sqlite3
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from packetgate.graph.postgres import open_pool
from packetgate.graph.private_files import private_file
from packetgate.graph.settings import Settings
from packetgate.graph.storage import SQLITE_TIMEOUT_S
from packetgate.state.base import now
from packetgate.state.errors import ConfigError
from packetgate.tools.execution.journal import Entry, Journal, Recorded
from packetgate.tools.spec.tool_spec import digest_of

if TYPE_CHECKING:
    from psycopg import AsyncConnection, AsyncCursor

_T = TypeVar("_T")

FORGOTTEN = "session_forgotten"
_SALT = "salt"
"""Key of a random value in every detail, so that nobody can guess an erased detail from its digest."""


class JournalRow(NamedTuple):
    """A row, in the order of the table's columns."""

    seq: int
    at: str
    session_id: str
    packet_id: str
    call_id: str
    event: str
    key: str | None
    digest: str
    """Digest of the detail."""
    previous: str
    """Hash of the previous row; empty in the first."""
    hash: str
    detail: str | None
    """JSON; None if erased."""

    @property
    def recorded(self) -> Recorded:
        """The entry with its number and time."""
        detail = json.loads(self.detail or "{}")
        detail.pop(_SALT, None)
        entry = Entry(self.event, self.session_id, self.packet_id, self.call_id, detail, self.key)
        return Recorded(self.seq, datetime.fromisoformat(self.at), entry)


class ChainHead(NamedTuple):
    """Number and hash of the newest row."""

    seq: int = 0
    hash: str = ""


def chained(entries: Iterable[Entry], head: ChainHead) -> list[JournalRow]:
    """Return entries as rows that follow `head`."""
    rows: list[JournalRow] = []
    for entry in entries:
        detail = json.dumps({**entry.detail, _SALT: secrets.token_hex(8)}, separators=(",", ":"))
        digest = hashlib.sha256(detail.encode()).hexdigest()
        names = (entry.session_id, entry.packet_id, entry.call_id, entry.event, entry.key)
        row = JournalRow(head.seq + 1, now().isoformat(), *names, digest, head.hash, "", detail)
        rows.append(row._replace(hash=_hash(row)))
        head = ChainHead(row.seq, rows[-1].hash)
    return rows


class JournalChain:
    """Verifies rows from the first to the last."""

    def __init__(self) -> None:
        self.head = ChainHead()
        self.erased = 0
        """Number of erased details."""
        self._unexplained: dict[str, int] = {}
        """First erased row by session, for sessions without a later `FORGOTTEN`."""

    def breach(self, row: JournalRow) -> str | None:
        """Return the problem with the next row, or None."""
        if row.seq != self.head.seq + 1:
            return f"row {self.head.seq + 1} is missing: row {row.seq} follows"
        if row.previous != self.head.hash:
            return f"row {row.seq} does not follow from row {self.head.seq}"
        if row.hash != _hash(row):
            return f"row {row.seq} has been changed"
        if row.detail is None:
            self.erased += 1
            self._unexplained.setdefault(row.session_id, row.seq)
        elif hashlib.sha256(row.detail.encode()).hexdigest() != row.digest:
            return f"the detail of row {row.seq} has been changed"
        elif row.event == FORGOTTEN:
            self._unexplained.pop(row.session_id, None)
        self.head = ChainHead(row.seq, row.hash)
        return None

    def end(self, head: ChainHead) -> str | None:
        """Return the problem with the end of the rows, given the stored head, or None."""
        if head != self.head:
            return f"the journal ended with row {head.seq} ({head.hash[:12]}), and now with row {self.head.seq}"
        if self._unexplained:
            first = min(self._unexplained.values())
            return f"the detail of row {first} was removed, and no later row says that its session was forgotten"
        return None


def _hash(row: JournalRow) -> str:
    return digest_of([*row[: JournalRow._fields.index("hash")]])


_TABLES = """
CREATE TABLE IF NOT EXISTS journal (
    seq BIGINT PRIMARY KEY, at TEXT NOT NULL, session_id TEXT NOT NULL, packet_id TEXT NOT NULL, call_id TEXT NOT NULL,
    event TEXT NOT NULL, key TEXT UNIQUE, digest TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL, detail TEXT
);
CREATE INDEX IF NOT EXISTS journal_calls ON journal (packet_id, call_id);
CREATE INDEX IF NOT EXISTS journal_events ON journal (event, seq);
CREATE INDEX IF NOT EXISTS journal_sessions ON journal (session_id, seq);
CREATE TABLE IF NOT EXISTS journal_head (one INTEGER PRIMARY KEY CHECK (one = 1), seq BIGINT NOT NULL, hash TEXT);
"""
_CHANGES_MORE = " OR ".join(
    f"NEW.{name} IS DISTINCT FROM OLD.{name}" for name in JournalRow._fields if name != "detail"
)
"""Condition of an update that does more than erase the detail."""
_REFUSAL = "the journal is append-only"
_SQLITE_TRIGGERS = f"""
CREATE TRIGGER IF NOT EXISTS journal_kept BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END;
CREATE TRIGGER IF NOT EXISTS journal_unchanged BEFORE UPDATE ON journal
WHEN NEW.detail IS NOT NULL OR {_CHANGES_MORE.replace("IS DISTINCT FROM", "IS NOT")}
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END;
"""
_POSTGRES_TRIGGERS = f"""
CREATE OR REPLACE FUNCTION journal_refuses() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$;
CREATE OR REPLACE TRIGGER journal_kept BEFORE DELETE ON journal FOR EACH ROW EXECUTE FUNCTION journal_refuses();
CREATE OR REPLACE TRIGGER journal_whole BEFORE TRUNCATE ON journal EXECUTE FUNCTION journal_refuses();
CREATE OR REPLACE TRIGGER journal_unchanged BEFORE UPDATE ON journal FOR EACH ROW
WHEN (NEW.detail IS NOT NULL OR {_CHANGES_MORE}) EXECUTE FUNCTION journal_refuses();
"""
_HEAD = "SELECT seq, hash FROM journal_head"
_INSERT = "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MOVE_HEAD = (
    "INSERT INTO journal_head VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, hash = excluded.hash"
)
_ERASE = "UPDATE journal SET detail = NULL WHERE session_id = ? AND event <> ? AND detail IS NOT NULL"
_PAGE_ROWS = 500
_POSTGRES_LOCK = 7_326_451_903
"""Key of the advisory lock that a process holds while it appends rows."""


def open_journal(settings: Settings, timeout_s: float | None = None) -> "DatabaseJournal":
    """Return the journal of the settings' database; `timeout_s` is the longest wait for another writer of SQLite."""
    return journal_at(settings.database_url or settings.database, timeout_s)


def journal_at(place: str | Path, timeout_s: float | None = None) -> "DatabaseJournal":
    """Return the journal at a PostgreSQL URL or in a SQLite file."""
    is_url = isinstance(place, str) and "://" in place
    return _PostgresJournal(str(place)) if is_url else _SqliteJournal(Path(place), timeout_s)


class DatabaseJournal(Journal):
    """A journal in a table. Entries with keys survive a power failure."""

    async def of_call(self, packet_id: str, call_id: str) -> tuple[Recorded, ...]:
        """Return the entries of one call, oldest first."""
        rows = await self._read(
            "SELECT * FROM journal WHERE packet_id = ? AND call_id = ? ORDER BY seq", (packet_id, call_id)
        )
        return tuple(row.recorded for row in rows)

    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return the entries of these events, oldest first."""
        marks = ", ".join("?" * len(events))
        rows = await self._read(f"SELECT * FROM journal WHERE event IN ({marks}) ORDER BY seq", events)  # noqa: S608
        return tuple(row.recorded for row in rows)

    async def rows(self, session_id: str | None = None) -> AsyncIterator[JournalRow]:
        """Yield the rows of all sessions, or of one session, oldest first."""
        condition, named = ("", ()) if session_id is None else (" AND session_id = ?", (session_id,))
        last, sql = 0, f"SELECT * FROM journal WHERE seq > ?{condition} ORDER BY seq LIMIT ?"  # noqa: S608
        while rows := await self._read(sql, (last, *named, _PAGE_ROWS)):
            for row in rows:
                yield row
            last = rows[-1].seq

    async def head(self) -> ChainHead:
        """Return the stored end of the journal."""
        rows = await self._fetch(_HEAD, ())
        return ChainHead(*rows[0]) if rows else ChainHead()

    @abstractmethod
    async def forget(self, session_id: str) -> None:
        """Erase the details of a session's rows and append a row that records it, in one transaction."""

    @abstractmethod
    async def _fetch(self, sql: str, values: Sequence[object]) -> list[Any]: ...

    async def _read(self, sql: str, values: Sequence[object]) -> list[JournalRow]:
        return [JournalRow(*row) for row in await self._fetch(sql, values)]


_INHERITED: list[sqlite3.Connection] = []
"""Connections of a parent process: closing them would release its locks on the file."""


class _SqliteJournal(DatabaseJournal):
    """Uses one thread and one connection."""

    def __init__(self, path: Path, timeout_s: float | None = None) -> None:
        self._path = path
        self._timeout_s = SQLITE_TIMEOUT_S if timeout_s is None else timeout_s
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        """Device and inode of the connection's file."""
        self._start()

    def _start(self) -> None:
        """Start in this process. After a fork the parent's thread and connection are unusable."""
        if self._connection is not None:
            _INHERITED.append(self._connection)
        self._pid, self._thread, self._connection = os.getpid(), ThreadPoolExecutor(1, "journal"), None

    async def record(self, *entries: Entry) -> bool:
        return await self._on_thread(self._append, entries)

    async def forget(self, session_id: str) -> None:
        await self._on_thread(self._forget, session_id)

    async def _fetch(self, sql: str, values: Sequence[object]) -> list[Any]:
        return await self._on_thread(self._run, sql, values)

    async def _on_thread(self, function: Callable[..., _T], *values: object) -> _T:
        if self._pid != os.getpid():
            self._start()
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *values)

    def _run(self, sql: str, values: Sequence[object]) -> list[Any]:
        with self._opened() as connection:
            return connection.execute(sql, values).fetchall()

    def _append(self, entries: Sequence[Entry]) -> bool:
        with self._opened(lasting=any(entry.key is not None or entry.is_lasting for entry in entries)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for key in (entry.key for entry in entries if entry.key is not None):
                if connection.execute("SELECT 1 FROM journal WHERE key = ?", (key,)).fetchone():
                    return False
            self._insert(connection, entries)
            return True

    def _forget(self, session_id: str) -> None:
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute(_ERASE, (session_id, FORGOTTEN)).rowcount:
                self._insert(connection, [Entry(FORGOTTEN, session_id)])

    def _insert(self, connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
        rows = chained(entries, ChainHead(*(connection.execute(_HEAD).fetchone() or ChainHead())))
        connection.executemany(_INSERT, rows)
        connection.execute(_MOVE_HEAD, (rows[-1].seq, rows[-1].hash))
        connection.execute("COMMIT")

    @contextmanager
    def _opened(self, *, lasting: bool = True) -> Iterator[sqlite3.Connection]:
        """Yield a connection. Commits survive this process; if `lasting`, also a power failure.

        SQLite's log is sequential: a commit that waits for the disk also flushes earlier commits.
        """
        try:
            connection = self._connected()
            connection.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.rollback()
        except (OSError, sqlite3.Error) as error:
            self._close()
            raise ConfigError(f"{self._path}: cannot write the journal: {error}; set PACKETGATE_HOME") from error

    def _connected(self) -> sqlite3.Connection:
        """Return a connection to the file at the path, which may have been replaced."""
        if self._connection is None or self._file != self._identity():
            self._close()
            private_file(self._path)
            connection = sqlite3.connect(
                self._path, timeout=self._timeout_s, isolation_level=None, check_same_thread=False
            )
            connection.executescript(_TABLES + _SQLITE_TRIGGERS)
            self._connection, self._file = connection, self._identity()
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


class _PostgresJournal(DatabaseJournal):
    """Uses the process's pool of connections."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def record(self, *entries: Entry) -> bool:
        # All writers of the journal wait for each other, so this takes only two round trips.
        keys = [entry.key for entry in entries if entry.key is not None]
        lasting = "on" if keys or any(entry.is_lasting for entry in entries) else "off"
        async with self._opened() as connection, connection.pipeline(), connection.transaction():
            await connection.execute(f"SET LOCAL synchronous_commit = {lasting}")
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_POSTGRES_LOCK,))
            taken = await _cursor(connection, "SELECT 1 FROM journal WHERE key = ANY(?) LIMIT 1", (keys,))
            newest = await _cursor(connection, _HEAD)
            if await taken.fetchone():
                return False
            await self._insert(connection, entries, newest)
            return True

    async def forget(self, session_id: str) -> None:
        async with self._opened() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_POSTGRES_LOCK,))
            if (await _cursor(connection, _ERASE, (session_id, FORGOTTEN))).rowcount:
                await self._insert(connection, [Entry(FORGOTTEN, session_id)], await _cursor(connection, _HEAD))

    async def _fetch(self, sql: str, values: Sequence[object]) -> list[Any]:
        async with self._opened() as connection:
            return await (await _cursor(connection, sql, values)).fetchall()

    async def _insert(
        self, connection: "AsyncConnection[Any]", entries: Sequence[Entry], newest: "AsyncCursor[tuple[Any, ...]]"
    ) -> None:
        rows = chained(entries, ChainHead(*(await newest.fetchone() or ChainHead())))
        async with connection.cursor() as cursor:
            await cursor.executemany(_INSERT.replace("?", "%s"), rows)
        await _cursor(connection, _MOVE_HEAD, (rows[-1].seq, rows[-1].hash))

    @asynccontextmanager
    async def _opened(self) -> "AsyncIterator[AsyncConnection[Any]]":
        async with open_pool(self._url, "journal", _create_in_postgres) as pool, pool.connection() as connection:
            yield connection


async def _create_in_postgres(connection: "AsyncConnection[Any]") -> None:
    if await (await _cursor(connection, "SELECT to_regclass('journal_head')")).fetchone() == (None,):
        await connection.execute(_TABLES + _POSTGRES_TRIGGERS, prepare=False)  # one transaction


async def _cursor(
    connection: "AsyncConnection[Any]", sql: str, values: Sequence[object] = ()
) -> "AsyncCursor[tuple[Any, ...]]":
    from psycopg.rows import tuple_row

    return await connection.cursor(row_factory=tuple_row).execute(sql.replace("?", "%s"), values)
