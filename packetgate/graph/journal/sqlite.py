"""The journal in a SQLite file."""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from packetgate.graph.journal.chain import FORGOTTEN, Head, Row, chained
from packetgate.graph.journal.table import ERASE, HEAD, INSERT, MOVE, OTHER, REFUSAL, TABLES, TAKEN, DatabaseJournal
from packetgate.graph.private import private_file
from packetgate.graph.storage import PATIENCE_S
from packetgate.state.errors import ConfigError
from packetgate.tools.execution.journal import Entry

T = TypeVar("T")

_INHERITED: list[sqlite3.Connection] = []
"""Connections of a parent process: to close one here would release locks on the file."""

_TRIGGERS = f"""
CREATE TRIGGER IF NOT EXISTS journal_kept BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END;
CREATE TRIGGER IF NOT EXISTS journal_unchanged BEFORE UPDATE ON journal
WHEN NEW.detail IS NOT NULL OR {OTHER.replace("IS DISTINCT FROM", "IS NOT")}
BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END;
"""


class SqliteJournal(DatabaseJournal):
    """In a SQLite file, written by one thread at a time of this process and one process at a time."""

    def __init__(self, path: Path, patience_s: float | None = None) -> None:
        self._path = path
        self._patience_s = PATIENCE_S if patience_s is None else patience_s
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        """Device and inode of the file that the connection is to."""
        self._begin()

    def _begin(self) -> None:
        """Start in this process. After a fork the parent's thread and connection neither work nor may be closed."""
        if self._connection is not None:
            _INHERITED.append(self._connection)
        self._pid, self._thread = os.getpid(), ThreadPoolExecutor(1, "journal")
        self._connection = None

    async def record(self, *entries: Entry) -> bool:
        """Write entries down; wait for the disk where one of them is to outlast a loss of power."""
        return await self._on_thread(self._append, entries)

    async def forget(self, session_id: str) -> None:
        """Erase the details of a session's rows, and record that, in one transaction."""
        await self._on_thread(self._forget, session_id)

    async def head(self) -> Head:
        """Return where the journal ends, as it is kept beside the rows."""
        found = await self._on_thread(self._run, HEAD, ())
        return Head(*found[0]) if found else Head()

    async def _read(self, sql: str, values: Sequence[object]) -> list[Row]:
        return [Row(*found) for found in await self._on_thread(self._run, sql, values)]

    async def _on_thread(self, function: Callable[..., T], *values: object) -> T:
        if self._pid != os.getpid():
            self._begin()
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *values)

    def _run(self, sql: str, values: Sequence[object]) -> list[Any]:
        with self._opened() as connection:
            return connection.execute(sql, values).fetchall()

    def _append(self, entries: Sequence[Entry]) -> bool:
        with self._opened(lasting=any(entry.key is not None or entry.is_lasting for entry in entries)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if any(entry.key is not None and connection.execute(TAKEN, (entry.key,)).fetchone() for entry in entries):
                return False
            _insert(connection, entries)
            connection.execute("COMMIT")
            return True

    def _forget(self, session_id: str) -> None:
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute(ERASE, (session_id, FORGOTTEN)).rowcount:
                _insert(connection, [Entry(FORGOTTEN, session_id)])
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self, *, lasting: bool = True) -> Iterator[sqlite3.Connection]:
        """Yield a connection. Whatever is committed outlasts this process; if `lasting`, a loss of power too.

        The file's log is written in order, so that what waits for the disk takes all that came before along.
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
            raise ConfigError(f"{self._path}: cannot keep the journal: {error}; set PACKETGATE_HOME") from error

    def _connected(self) -> sqlite3.Connection:
        """Return the connection to the file that has the path now: it may have been replaced."""
        if self._connection is None or self._file != self._identity():
            self._close()
            private_file(self._path)
            made = sqlite3.connect(self._path, timeout=self._patience_s, isolation_level=None, check_same_thread=False)
            made.executescript(TABLES + _TRIGGERS)
            self._connection, self._file = made, self._identity()
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


def _insert(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    rows = chained(entries, Head(*(connection.execute(HEAD).fetchone() or Head())))
    connection.executemany(INSERT, rows)
    connection.execute(MOVE, (rows[-1].seq, rows[-1].hash))
