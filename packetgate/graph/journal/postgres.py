"""The journal in PostgreSQL."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from packetgate.graph.journal.chain import FORGOTTEN, Head, Row, chained
from packetgate.graph.journal.table import ERASE, HEAD, INSERT, MOVE, OTHER, REFUSAL, TABLES, DatabaseJournal
from packetgate.graph.postgres import pooled
from packetgate.tools.execution.journal import Entry

if TYPE_CHECKING:
    from psycopg import AsyncConnection, AsyncCursor

_LOCK = 7_326_451_903
"""The advisory lock under which the chain grows."""

_TAKEN = "SELECT 1 FROM journal WHERE key = ANY(%s) LIMIT 1"
_TRIGGERS = f"""
CREATE OR REPLACE FUNCTION journal_refuses() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$;
CREATE OR REPLACE TRIGGER journal_kept BEFORE DELETE ON journal FOR EACH ROW EXECUTE FUNCTION journal_refuses();
CREATE OR REPLACE TRIGGER journal_whole BEFORE TRUNCATE ON journal EXECUTE FUNCTION journal_refuses();
CREATE OR REPLACE TRIGGER journal_unchanged BEFORE UPDATE ON journal FOR EACH ROW
WHEN (NEW.detail IS NOT NULL OR {OTHER}) EXECUTE FUNCTION journal_refuses();
"""


class PostgresJournal(DatabaseJournal):
    """Over the connections that a process shares."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def record(self, *entries: Entry) -> bool:
        """Write entries down; wait for the disk where one of them is to outlast a loss of power.

        All journals of a database wait for each other here, so that it takes two round trips, whatever is written.
        """
        keys = [entry.key for entry in entries if entry.key is not None]
        lasting = "on" if keys or any(entry.is_lasting for entry in entries) else "off"
        async with self._opened() as connection, connection.pipeline(), connection.transaction():
            await connection.execute(f"SET LOCAL synchronous_commit = {lasting}")
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            taken = await _cursor(connection, _TAKEN, (keys,))
            newest = await _cursor(connection, HEAD)
            if await taken.fetchone():
                return False
            await _insert(connection, entries, Head(*(await newest.fetchone() or Head())))
            return True

    async def forget(self, session_id: str) -> None:
        """Erase the details of a session's rows, and record that, in one transaction."""
        async with self._opened() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            erased = await connection.execute(_filled(ERASE), (session_id, FORGOTTEN))
            if erased.rowcount:
                newest = await _cursor(connection, HEAD)
                await _insert(connection, [Entry(FORGOTTEN, session_id)], Head(*(await newest.fetchone() or Head())))

    async def head(self) -> Head:
        """Return where the journal ends, as it is kept beside the rows."""
        async with self._opened() as connection:
            return Head(*(await (await _cursor(connection, HEAD)).fetchone() or Head()))

    async def _read(self, sql: str, values: Sequence[object]) -> list[Row]:
        async with self._opened() as connection:
            return [Row(*found) for found in await (await _cursor(connection, _filled(sql), values)).fetchall()]

    @asynccontextmanager
    async def _opened(self) -> "AsyncIterator[AsyncConnection[Any]]":
        async with pooled(self._url, "journal", _make) as pool, pool.connection() as connection:
            yield connection


async def _make(connection: "AsyncConnection[Any]") -> None:
    if await (await _cursor(connection, "SELECT to_regclass('journal_head')")).fetchone() == (None,):
        await connection.execute(TABLES + _TRIGGERS, prepare=False)  # all at once, or none of it


async def _insert(connection: "AsyncConnection[Any]", entries: Sequence[Entry], head: Head) -> None:
    rows = chained(entries, head)
    async with connection.cursor() as cursor:
        await cursor.executemany(_filled(INSERT), rows)
    await connection.execute(_filled(MOVE), (rows[-1].seq, rows[-1].hash))


async def _cursor(
    connection: "AsyncConnection[Any]", sql: str, values: Sequence[object] = ()
) -> "AsyncCursor[tuple[Any, ...]]":
    from psycopg.rows import tuple_row

    return await connection.cursor(row_factory=tuple_row).execute(sql, values)


def _filled(sql: str) -> str:
    return sql.replace("?", "%s")
