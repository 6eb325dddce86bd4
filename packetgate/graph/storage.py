"""Open checkpoints and records: in one SQLite file, or in PostgreSQL if a URL is set."""

import asyncio
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from packetgate.graph.postgres import open_pool
from packetgate.graph.private_files import private_file
from packetgate.graph.settings import Settings
from packetgate.state.database_errors import SESSION_CONTENT, check_sqlite, database_problem
from packetgate.state.errors import ConfigError

if TYPE_CHECKING:
    from aiosqlite import Connection
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore, Op, Result

SQLITE_TIMEOUT_S = 60.0
"""Longest wait for another connection that writes."""
_SETUP_ATTEMPTS = 10


@asynccontextmanager
async def open_checkpointer(
    settings: Settings, timeout_s: float = SQLITE_TIMEOUT_S
) -> "AsyncIterator[BaseCheckpointSaver[str]]":
    """Open the checkpoints.

    Raises:
        ConfigError: the database cannot be opened.
    """
    from packetgate.graph.checkpoints import AtomicSaver, PacketSerializer  # slow to load, as all of LangGraph

    if settings.database_url:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        class PostgresSaver(AtomicSaver, AsyncPostgresSaver): ...

        async with open_pool(settings.database_url, lambda connection: AsyncPostgresSaver(connection).setup()) as pool:
            postgres = PostgresSaver(pool, serde=PacketSerializer())
            postgres.lock = cast("asyncio.Lock", nullcontext())  # needed for one connection only, not for a pool
            yield postgres
        return
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    class AtomicSqliteSaver(AtomicSaver, AsyncSqliteSaver):
        def _database_errors(self) -> AbstractContextManager[None]:
            return sqlite_errors(settings.database)

    async with _open_sqlite(settings.database, timeout_s) as connection:
        sqlite = AtomicSqliteSaver(connection, serde=PacketSerializer())
        await sqlite.setup()
        yield sqlite


async def check_database(settings: Settings) -> None:
    """Open the database; check the structure of a SQLite file.

    Raises:
        ConfigError: the database cannot be used.
    """
    async with open_checkpointer(settings), open_store(settings):
        if not settings.database_url:
            with sqlite_errors(settings.database):
                await asyncio.to_thread(check_sqlite, settings.database)


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn an error of SQLite into a ConfigError that names the file and the fix."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(database_problem(path, error, SESSION_CONTENT)) from error


@asynccontextmanager
async def open_store(settings: Settings, timeout_s: float = SQLITE_TIMEOUT_S) -> "AsyncIterator[BaseStore]":
    """Open the records, in the same database.

    Raises:
        ConfigError: the database cannot be opened.
    """
    if settings.database_url:
        from langgraph.store.postgres.aio import AsyncPostgresStore

        async with open_pool(settings.database_url, lambda connection: AsyncPostgresStore(connection).setup()) as pool:
            yield AsyncPostgresStore(pool)
        return
    import aiosqlite
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    class SqliteStore(AsyncSqliteStore):
        async def abatch(self, ops: "Iterable[Op]") -> "list[Result]":
            with sqlite_errors(settings.database):
                return await super().abatch(ops)

    def load(content: Any) -> dict[str, Any]:
        try:
            value: dict[str, Any] = json.loads(content)
        except ValueError as error:
            raise ConfigError(database_problem(settings.database, error, SESSION_CONTENT)) from error
        return value

    async with _open_sqlite(
        settings.database, timeout_s, isolation_level=None, factory=_ImmediateConnection
    ) as connection:
        sqlite = SqliteStore(connection, deserializer=load)
        for attempt in range(_SETUP_ATTEMPTS):  # if processes create the file at once, setup fails in all but one
            try:
                await sqlite.setup()
                break
            except aiosqlite.DatabaseError:
                if attempt == _SETUP_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(random.uniform(0.01, 0.1))  # noqa: S311
        yield sqlite


class _ImmediateConnection(sqlite3.Connection):
    """Takes the write lock when a transaction begins.

    The store reads before it writes. If it took the lock only at the write, the lock could fail.
    """

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute("BEGIN IMMEDIATE" if sql == "BEGIN" else sql, *parameters)


@asynccontextmanager
async def _open_sqlite(path: Path, timeout_s: float, **options: Any) -> "AsyncIterator[Connection]":
    import aiosqlite

    with sqlite_errors(path):
        await asyncio.to_thread(private_file, path)
        connection = await aiosqlite.connect(path, timeout=timeout_s, **options)
    try:
        with sqlite_errors(path):
            await connection.execute("PRAGMA journal_mode = WAL")
            # Stages do not wait for the disk. A write of the journal that waits also flushes everything before it.
            await connection.execute("PRAGMA synchronous = NORMAL")
        yield connection
    except sqlite3.Error as error:
        raise ConfigError(database_problem(path, error, SESSION_CONTENT)) from error
    finally:
        await connection.close()
