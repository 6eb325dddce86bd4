"""Where sessions and the record of turns are kept: one SQLite file, or PostgreSQL when a URL is given."""

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from graph.private import private_file
from graph.serializer import PacketSerializer
from graph.settings import Settings
from state.errors import ConfigError

if TYPE_CHECKING:
    from aiosqlite import Connection

ATTEMPTS = 10
PATIENCE_S = 60.0
"""Longest wait for another connection that writes, of this process or another."""


@asynccontextmanager
async def open_checkpointer(settings: Settings) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open where sessions are kept.

    Raises:
        ConfigError: it cannot be opened.
    """
    if settings.database_url:
        with reached_postgres(settings.database_url) as url:
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
            from psycopg import DatabaseError

            async with AsyncPostgresSaver.from_conn_string(url, serde=PacketSerializer()) as postgres:
                await _set_up(postgres, DatabaseError)
                yield postgres
        return
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with _sqlite(settings.database) as connection:
        sqlite = AsyncSqliteSaver(connection, serde=PacketSerializer())
        await sqlite.setup()
        yield sqlite


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[BaseStore]:
    """Open where the record of turns is kept: in the same database, over a connection of its own.

    Raises:
        ConfigError: it cannot be opened.
    """
    if settings.database_url:
        with reached_postgres(settings.database_url) as url:
            from langgraph.store.postgres.aio import AsyncPostgresStore
            from psycopg import DatabaseError

            async with AsyncPostgresStore.from_conn_string(url) as postgres:
                await _set_up(postgres, DatabaseError)
                yield postgres
        return
    import aiosqlite
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    async with _sqlite(settings.database, isolation_level=None, factory=_Writing) as connection:
        # A record that a power cut takes is no loss that every turn should wait for the disk to prevent.
        await connection.execute("PRAGMA synchronous = NORMAL")
        sqlite = AsyncSqliteStore(connection)
        await _set_up(sqlite, aiosqlite.DatabaseError)
        yield sqlite


class _Writing(sqlite3.Connection):
    """A connection whose transactions take their turn to write when they begin.

    The store reads and writes in one. Begun as a reading one, it would fail where another connection wrote in between,
    and waiting would not help it.
    """

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute("BEGIN IMMEDIATE" if sql == "BEGIN" else sql, *parameters)


class _Migrating(Protocol):
    async def setup(self) -> None: ...


async def _set_up(database: _Migrating, race: type[Exception]) -> None:
    """Make the tables. Of processes that meet at a new database all but one fail, and find them made a moment later."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await database.setup()
        except race:
            await asyncio.sleep(random.uniform(0.01, 0.1))  # noqa: S311
    return await database.setup()


@asynccontextmanager
async def _sqlite(path: Path, **options: Any) -> "AsyncIterator[Connection]":
    import aiosqlite

    try:
        await asyncio.to_thread(private_file, path)
        connection = await aiosqlite.connect(path, timeout=PATIENCE_S, **options)
    except (OSError, aiosqlite.Error) as error:
        raise ConfigError(
            f"{path}: cannot keep sessions there: {error}; set PACKETGATE_HOME to a folder of yours"
        ) from error
    try:
        await connection.execute("PRAGMA journal_mode = WAL")
        yield connection
    except aiosqlite.DatabaseError as error:
        raise ConfigError(
            f"{path}: not a usable session file: {error}; move it away, or set PACKETGATE_HOME"
        ) from error
    finally:
        await connection.close()


@contextmanager
def reached_postgres(url: str) -> Iterator[str]:
    """Check the URL, and say of a database that cannot be used why not."""
    try:
        import langgraph.checkpoint.postgres  # noqa: F401
        from psycopg import OperationalError, ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise ConfigError("PACKETGATE_DATABASE_URL needs the extra: pip install 'packetgate[postgres]'") from error
    try:
        conninfo_to_dict(url)
    except ProgrammingError as error:  # its text would show the URL, and with it the password
        raise ConfigError(
            "PACKETGATE_DATABASE_URL is no PostgreSQL URL: use postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from error
    try:
        yield url
    except OperationalError as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"PACKETGATE_DATABASE_URL: the database cannot be reached: {reason}") from error
