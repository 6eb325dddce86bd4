"""Where sessions and the record of turns are kept: one SQLite file, or PostgreSQL when a URL is given."""

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from packetgate.graph.postgres import pooled
from packetgate.graph.private import private_file
from packetgate.graph.savers import Whole
from packetgate.graph.serializer import PacketSerializer
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError

if TYPE_CHECKING:
    from aiosqlite import Connection
    from langgraph.store.sqlite.aio import AsyncSqliteStore
    from psycopg import AsyncConnection

ATTEMPTS = 10
PATIENCE_S = 60.0
"""Longest wait for another connection that writes, of this process or another."""


@asynccontextmanager
async def open_checkpointer(
    settings: Settings, patience_s: float = PATIENCE_S
) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open where sessions are kept.

    Raises:
        ConfigError: it cannot be opened.
    """
    if settings.database_url:
        async with pooled(settings.database_url, "checkpoints", _make_checkpoints) as pool:
            from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

            class PostgresSaver(Whole, AsyncPostgresSaver): ...

            postgres = PostgresSaver(pool, serde=PacketSerializer())
            postgres.lock = cast("asyncio.Lock", nullcontext())  # it is for one connection; the pool has a bound
            yield postgres
        return
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    class SqliteSaver(Whole, AsyncSqliteSaver): ...

    async with _sqlite(settings.database, patience_s) as connection:
        sqlite = SqliteSaver(connection, serde=PacketSerializer())
        await sqlite.setup()
        yield sqlite


@asynccontextmanager
async def open_store(settings: Settings, patience_s: float = PATIENCE_S) -> AsyncIterator[BaseStore]:
    """Open where the record of turns is kept: in the same database.

    Raises:
        ConfigError: it cannot be opened.
    """
    if settings.database_url:
        async with pooled(settings.database_url, "store", _make_store) as pool:
            from langgraph.store.postgres.aio import AsyncPostgresStore

            yield AsyncPostgresStore(pool)
        return
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    async with _sqlite(settings.database, patience_s, isolation_level=None, factory=_Writing) as connection:
        sqlite = AsyncSqliteStore(connection)
        await _set_up(sqlite)
        yield sqlite


class _Writing(sqlite3.Connection):
    """A connection whose transactions take their turn to write when they begin.

    The store reads and writes in one. Begun as a reading one, it would fail where another connection wrote in between,
    and waiting would not help it.
    """

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute("BEGIN IMMEDIATE" if sql == "BEGIN" else sql, *parameters)


async def _set_up(store: "AsyncSqliteStore") -> None:
    """Make the tables. Of processes that meet at a new file all but one fail, and find them made a moment later."""
    import aiosqlite

    for _ in range(ATTEMPTS - 1):
        try:
            return await store.setup()
        except aiosqlite.DatabaseError:
            await asyncio.sleep(random.uniform(0.01, 0.1))  # noqa: S311
    return await store.setup()


async def _make_checkpoints(connection: "AsyncConnection[Any]") -> None:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    await AsyncPostgresSaver(connection).setup()


async def _make_store(connection: "AsyncConnection[Any]") -> None:
    from langgraph.store.postgres.aio import AsyncPostgresStore

    await AsyncPostgresStore(connection).setup()


@asynccontextmanager
async def _sqlite(path: Path, patience_s: float, **options: Any) -> "AsyncIterator[Connection]":
    import aiosqlite

    try:
        await asyncio.to_thread(private_file, path)
        connection = await aiosqlite.connect(path, timeout=patience_s, **options)
    except (OSError, aiosqlite.Error) as error:
        raise ConfigError(
            f"{path}: cannot keep sessions there: {error}; set PACKETGATE_HOME to a folder of yours"
        ) from error
    try:
        await connection.execute("PRAGMA journal_mode = WAL")
        # No step waits for the disk; what the journal waits for takes all that was committed before it along.
        await connection.execute("PRAGMA synchronous = NORMAL")
        yield connection
    except aiosqlite.OperationalError as error:
        raise ConfigError(f"{path}: sessions cannot be kept there now: {error}") from error
    except aiosqlite.DatabaseError as error:
        raise ConfigError(
            f"{path}: not a usable session file: {error}; move it away, or set PACKETGATE_HOME"
        ) from error
    finally:
        await connection.close()
