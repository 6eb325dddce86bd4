"""The journal in PostgreSQL."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from graph.journal.chain import Head, Row, chained
from graph.journal.table import ERASE, HEAD, INSERT, MOVE, OTHER, REFUSAL, TABLES, TAKEN, DatabaseJournal
from graph.storage import reached_postgres
from tools.execution.journal import Entry

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_LOCK = 7_326_451_903
"""The advisory lock under which the chain grows."""

_TRIGGERS = f"""
CREATE OR REPLACE FUNCTION journal_refuses() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$;
CREATE OR REPLACE TRIGGER journal_kept BEFORE DELETE ON journal FOR EACH ROW EXECUTE FUNCTION journal_refuses();
CREATE OR REPLACE TRIGGER journal_whole BEFORE TRUNCATE ON journal EXECUTE FUNCTION journal_refuses();
CREATE OR REPLACE TRIGGER journal_unchanged BEFORE UPDATE ON journal FOR EACH ROW
WHEN (NEW.detail IS NOT NULL OR {OTHER}) EXECUTE FUNCTION journal_refuses();
"""


class PostgresJournal(DatabaseJournal):
    """Over a connection for each use: a turn writes a handful of times."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def record(self, *entries: Entry) -> bool:
        """Write entries down; they are on the disk when this returns."""
        async with self._opened() as connection:
            for entry in entries:
                if entry.key is not None and await _fetched(connection, TAKEN, (entry.key,)):
                    return False
            (head,) = await _fetched(connection, HEAD) or [Head()]
            rows = chained(entries, Head(*head))
            async with connection.cursor() as cursor:
                await cursor.executemany(_filled(INSERT), rows)
            await connection.execute(_filled(MOVE), (rows[-1].seq, rows[-1].hash))
            return True

    async def forget(self, session_id: str) -> None:
        """Erase the details of a session's rows."""
        async with self._opened() as connection:
            await connection.execute(_filled(ERASE), (session_id,))

    async def head(self) -> Head:
        """Return where the journal ends, as it is kept beside the rows."""
        async with self._opened() as connection:
            found = await _fetched(connection, HEAD)
        return Head(*found[0]) if found else Head()

    async def _read(self, sql: str, values: Sequence[object]) -> list[Row]:
        async with self._opened() as connection:
            return [Row(*found) for found in await _fetched(connection, sql, values)]

    @asynccontextmanager
    async def _opened(self) -> "AsyncIterator[AsyncConnection[Any]]":
        """Open a transaction that no other one writes beside."""
        with reached_postgres(self._url) as url:
            from psycopg import AsyncConnection

            async with await AsyncConnection.connect(url) as connection:
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                if await _fetched(connection, "SELECT to_regclass('journal_head')") == [(None,)]:
                    await connection.execute(TABLES + _TRIGGERS)
                yield connection


async def _fetched(connection: "AsyncConnection[Any]", sql: str, values: Sequence[object] = ()) -> list[Any]:
    return await (await connection.execute(_filled(sql), values)).fetchall()


def _filled(sql: str) -> str:
    return sql.replace("?", "%s")
