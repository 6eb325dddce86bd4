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
import weakref
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from packetgate.gate.journal import Entry, Journal, RecordedEntry
from packetgate.graph.postgres import is_stale, keepalive_options, postgres_errors
from packetgate.graph.private_files import private_file
from packetgate.graph.settings import Settings
from packetgate.graph.storage import SQLITE_TIMEOUT_S
from packetgate.state.base import now
from packetgate.state.database_errors import SESSION_CONTENT, database_problem
from packetgate.state.errors import ConfigError
from packetgate.tools.spec.tool_spec import digest_of

_T = TypeVar("_T")

FORGOTTEN = "session_forgotten"
TRIGGERS_REPLACED = "triggers_replaced"
"""Event of a row that records missing or changed triggers, which were created again."""
_SALT = "salt"
"""Key of a random value in every detail, so that an erased detail cannot be guessed from its digest."""


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
    def recorded_entry(self) -> RecordedEntry:
        """The entry with its number and time. Raises ConfigError if the row is damaged."""
        try:
            detail = json.loads(self.detail or "{}")
            detail.pop(_SALT, None)
            entry = Entry(self.event, self.session_id, self.packet_id, self.call_id, detail, self.key)
            return RecordedEntry(self.seq, datetime.fromisoformat(self.at), entry)
        except (ValueError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"row {self.seq} of the journal is damaged: `packetgate audit --verify` checks all rows, and `audit "
                "--json` prints them; restore a backup of the database, or move it away"
            ) from error


class ChainHead(NamedTuple):
    """Number and hash of the newest row."""

    seq: int = 0
    hash: str = ""


def chain_rows(entries: Iterable[Entry], head: ChainHead) -> list[JournalRow]:
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
        self.replaced_triggers: JournalRow | None = None
        """The newest row that records missing or changed triggers."""
        self._unexplained: dict[str, int] = {}
        """First erased row by session, for sessions without a later `FORGOTTEN`."""

    def check_row(self, row: JournalRow) -> str | None:
        """Add the next row. Return what is wrong with it, or None."""
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
        elif row.event == TRIGGERS_REPLACED:
            self.replaced_triggers = row
        self.head = ChainHead(row.seq, row.hash)
        return None

    def check_end(self, head: ChainHead) -> str | None:
        """Compare the end of the rows with the stored `head`. Return the problem, or None."""
        if head != self.head:
            return f"the last row is {self.head.seq}, but the stored head is row {head.seq} ({head.hash[:12]})"
        if self._unexplained:
            first = min(self._unexplained.values())
            return f"the detail of row {first} was removed, but no later row says that its session was forgotten"
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
_SQLITE_TRIGGERS = {
    "journal_kept": "BEFORE DELETE ON journal",
    "journal_unchanged": "BEFORE UPDATE ON journal WHEN NEW.detail IS NOT NULL OR "
    + _CHANGES_MORE.replace("IS DISTINCT FROM", "IS NOT"),
}
_POSTGRES_BODY = f"BEGIN RAISE EXCEPTION '{_REFUSAL}'; END"
_POSTGRES_FUNCTION = f"""
CREATE OR REPLACE FUNCTION journal_refuses() RETURNS trigger LANGUAGE plpgsql AS $$ {_POSTGRES_BODY} $$
"""
_POSTGRES_PRESENT = """
SELECT tgname, prosrc FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE tgrelid = 'journal'::regclass AND tgenabled IN ('O', 'A')
"""
_POSTGRES_TRIGGERS = {
    "journal_kept": "BEFORE DELETE ON journal FOR EACH ROW",
    "journal_whole": "BEFORE TRUNCATE ON journal",
    "journal_unchanged": f"BEFORE UPDATE ON journal FOR EACH ROW WHEN (NEW.detail IS NOT NULL OR {_CHANGES_MORE})",
}
_HEAD = "SELECT seq, hash FROM journal_head"
_INSERT = "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MOVE_HEAD = (
    "INSERT INTO journal_head VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, hash = excluded.hash"
)
_ERASE = "UPDATE journal SET detail = NULL WHERE session_id = ? AND event <> ? AND detail IS NOT NULL"
_PAGE_ROWS = 500
_POSTGRES_LOCK = 7_326_451_903
"""Key of the advisory lock that a process holds while it appends rows."""

_INHERITED: list[Any] = []
"""Connections of a parent process: closing them would release its locks, or end its session."""

Execute = Callable[..., Any]
"""Runs SQL with `?` for values, and returns a cursor."""


def open_journal(settings: Settings, timeout_s: float | None = None) -> "DatabaseJournal":
    """Return the journal of the settings' database; `timeout_s` is the longest wait for another writer of SQLite."""
    return journal_at(settings.database_url or settings.database, timeout_s)


def journal_at(place: str | Path, timeout_s: float | None = None) -> "DatabaseJournal":
    """Return the journal at a PostgreSQL URL or in a SQLite file."""
    is_url = isinstance(place, str) and "://" in place
    return _PostgresJournal(str(place)) if is_url else _SqliteJournal(Path(place), timeout_s)


class DatabaseJournal(Journal):
    """A journal in a table, on one thread with one connection. Entries with keys survive a power failure."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._start()

    def _start(self) -> None:
        """Start in this process. After a fork the parent's thread and connection are unusable."""
        if self._connection is not None:
            _INHERITED.append(self._connection)
        self._pid, self._thread, self._connection = os.getpid(), ThreadPoolExecutor(1, "journal"), None

    async def record(self, *entries: Entry) -> bool:
        """Append entries and return True; return False if a key exists."""
        return not entries or await self._run_on_thread(self._append, entries)

    async def forget(self, session_id: str) -> None:
        """Erase the details of a session's rows and append a row that records it, in one transaction."""
        await self._run_on_thread(self._forget, session_id)

    async def call_entries(self, packet_id: str, call_id: str) -> tuple[RecordedEntry, ...]:
        """Return the entries of one call, oldest first."""
        rows = await self._read("WHERE packet_id = ? AND call_id = ? ORDER BY seq", packet_id, call_id)
        return tuple(row.recorded_entry for row in rows)

    async def event_entries(self, *events: str, since: datetime | None = None) -> tuple[RecordedEntry, ...]:
        """Return the entries of these events, or only those from `since` on, oldest first."""
        earliest = since.isoformat() if since else ""
        condition = f"WHERE event IN ({', '.join('?' * len(events))}) AND at >= ? ORDER BY seq"
        rows = await self._read(condition, *events, earliest)
        return tuple(row.recorded_entry for row in rows)

    async def rows(self, session_id: str | None = None) -> AsyncIterator[JournalRow]:
        """Yield the rows of all sessions, or of one session, oldest first."""
        condition, values = ("", ()) if session_id is None else (" AND session_id = ?", (session_id,))
        last = 0
        while rows := await self._read(f"WHERE seq > ?{condition} ORDER BY seq LIMIT ?", last, *values, _PAGE_ROWS):
            for row in rows:
                yield row
            last = rows[-1].seq

    async def head(self) -> ChainHead:
        """Return the stored end of the journal."""
        rows = await self._run_on_thread(self._fetch, _HEAD)
        return ChainHead(*rows[0]) if rows else ChainHead()

    async def _read(self, condition: str, *values: object) -> list[JournalRow]:
        rows = await self._run_on_thread(self._fetch, f"SELECT * FROM journal {condition}", *values)  # noqa: S608
        return [JournalRow(*row) for row in rows]

    async def _run_on_thread(self, function: Callable[..., _T], *values: object) -> _T:
        if self._pid != os.getpid():
            self._start()
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *values)

    def _fetch(self, sql: str, *values: object) -> list[Any]:
        with self._open_connection() as execute:
            rows: list[Any] = execute(sql, values).fetchall()
            return rows

    def _append(self, entries: Sequence[Entry]) -> bool:
        keys = [entry.key for entry in entries if entry.key is not None]
        with self._transaction(durable=bool(keys) or any(entry.is_durable for entry in entries)) as execute:
            same_keys = [execute("SELECT 1 FROM journal WHERE key = ?", (key,)) for key in keys]
            head = execute(_HEAD)
            if any(cursor.fetchone() for cursor in same_keys):
                return False
            _insert(execute, entries, head.fetchone())
        return True

    def _forget(self, session_id: str) -> None:
        with self._transaction() as execute:
            head, erased = execute(_HEAD), execute(_ERASE, (session_id, FORGOTTEN))
            newest_row = head.fetchone()
            if erased.rowcount:
                _insert(execute, [Entry(FORGOTTEN, session_id)], newest_row)

    @abstractmethod
    def _open_connection(self) -> AbstractContextManager[Execute]: ...

    @abstractmethod
    def _transaction(self, *, durable: bool = True) -> AbstractContextManager[Execute]:
        """Return a transaction that no other writer interrupts. If `durable`, it survives a power failure."""

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _insert(execute: Execute, entries: Sequence[Entry], head: tuple[int, str] | None) -> None:
    rows = chain_rows(entries, ChainHead(*(head or ChainHead())))
    for row in rows:
        execute(_INSERT, row)
    execute(_MOVE_HEAD, (rows[-1].seq, rows[-1].hash))


def _record_replaced_triggers(execute: Execute, names: Sequence[str]) -> None:
    """Append a row that names the triggers, unless the journal is new."""
    head = execute(_HEAD).fetchone() if names else None
    if head:
        _insert(execute, [Entry(TRIGGERS_REPLACED, detail={"detail": ", ".join(names)})], head)


def _sqlite_trigger(name: str) -> str:
    return f"CREATE TRIGGER {name} {_SQLITE_TRIGGERS[name]} BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"


class _SqliteJournal(DatabaseJournal):
    def __init__(self, path: Path, timeout_s: float | None = None) -> None:
        super().__init__()
        self._path = path
        self._timeout_s = SQLITE_TIMEOUT_S if timeout_s is None else timeout_s
        self._file: tuple[int, int] | None = None
        """Device and inode of the connection's file."""

    @contextmanager
    def _open_connection(self) -> Iterator[Execute]:
        try:
            if self._connection is None or self._file != self._identity():  # the file may have been replaced
                self._close()
                private_file(self._path)
                self._connection = sqlite3.connect(
                    self._path, timeout=self._timeout_s, isolation_level=None, check_same_thread=False
                )
                self._connection.executescript(_TABLES)
                if self._invalid_triggers():
                    self._replace_triggers()
                self._file = self._identity()
            yield self._connection.execute
        except (OSError, sqlite3.Error) as error:
            self._close()
            raise ConfigError(database_problem(self._path, error, SESSION_CONTENT)) from error

    def _invalid_triggers(self) -> list[str]:
        rows = self._connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        present = dict(rows.fetchall())
        return [name for name in _SQLITE_TRIGGERS if " ".join(present.get(name, "").split()) != _sqlite_trigger(name)]

    def _replace_triggers(self) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            invalid = self._invalid_triggers()
            for name in invalid:
                execute(f"DROP TRIGGER IF EXISTS {name}")
                execute(_sqlite_trigger(name))
            _record_replaced_triggers(execute, invalid)
            execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                execute("ROLLBACK")

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[Execute]:
        with self._open_connection() as execute:
            # SQLite's log is sequential: a commit that waits for the disk also flushes earlier commits.
            execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            execute("BEGIN IMMEDIATE")
            try:
                yield execute
                execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    execute("ROLLBACK")

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


class _PostgresJournal(DatabaseJournal):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    @contextmanager
    def _open_connection(self) -> Iterator[Execute]:
        with postgres_errors(self._url) as url:
            import psycopg

            if self._connection is None or is_stale(self._connection):
                self._close()
                options = keepalive_options(url)
                connection = psycopg.connect(url, autocommit=True, options=options)
                try:
                    with connection.transaction():
                        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_POSTGRES_LOCK,))
                        if connection.execute("SELECT to_regclass('journal_head')").fetchone() == (None,):
                            connection.execute(_TABLES, prepare=False)
                        _replace_postgres_triggers(connection)
                except BaseException:
                    connection.close()
                    raise
                weakref.finalize(self, _close_in_process, connection, os.getpid())
                self._connection = connection
            yield self._execute

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[Execute]:
        # All writers wait for each other. The pipeline sends several statements at once: two round trips for a record.
        with self._open_connection() as execute, self._connection.pipeline(), self._connection.transaction():
            execute(f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}")
            execute("SELECT pg_advisory_xact_lock(?)", (_POSTGRES_LOCK,))
            yield execute

    def _execute(self, sql: str, values: Sequence[object] = ()) -> Any:
        return _execute_in_postgres(self._connection, sql, values)


def _execute_in_postgres(connection: Any, sql: str, values: Sequence[object] = ()) -> Any:
    return connection.execute(sql.replace("?", "%s"), values)


def _replace_postgres_triggers(connection: Any) -> None:
    present = {name for name, body in connection.execute(_POSTGRES_PRESENT) if body.strip() == _POSTGRES_BODY}
    invalid = [name for name in _POSTGRES_TRIGGERS if name not in present]
    if invalid:
        connection.execute(_POSTGRES_FUNCTION)
    for name in invalid:
        connection.execute(f"DROP TRIGGER IF EXISTS {name} ON journal")
        connection.execute(f"CREATE TRIGGER {name} {_POSTGRES_TRIGGERS[name]} EXECUTE FUNCTION journal_refuses()")
    _record_replaced_triggers(partial(_execute_in_postgres, connection), invalid)


def _close_in_process(connection: Any, process: int) -> None:
    if process == os.getpid():
        connection.close()
