"""Where sessions are kept: one SQLite file, or PostgreSQL when a URL is given."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from graph.serializer import PacketSerializer
from graph.settings import Settings
from state.errors import ConfigError


def serializer() -> JsonPlusSerializer:
    """Return a serializer that restores our own types and LangChain's messages, and nothing else."""
    return PacketSerializer()


@asynccontextmanager
async def open_checkpointer(settings: Settings) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the sessions' store.

    Raises:
        ConfigError: it cannot be opened.
    """
    if settings.database_url:
        async with _postgres(settings.database_url) as saver:
            yield saver
        return
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    path = settings.database
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = await aiosqlite.connect(path)
    except (OSError, aiosqlite.Error) as error:
        raise ConfigError(
            f"{path}: cannot keep sessions there: {error}; set PACKETGATE_HOME to a folder of yours"
        ) from error
    try:
        await connection.execute("PRAGMA journal_mode = WAL")
        saver = AsyncSqliteSaver(connection, serde=serializer())
        await saver.setup()
        yield saver
    except aiosqlite.DatabaseError as error:
        raise ConfigError(
            f"{path}: not a usable session file: {error}; move it away, or set PACKETGATE_HOME"
        ) from error
    finally:
        await connection.close()


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[BaseCheckpointSaver[str]]:
    try:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
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
        async with AsyncPostgresSaver.from_conn_string(url, serde=serializer()) as saver:
            await saver.setup()
            yield saver
    except OperationalError as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"PACKETGATE_DATABASE_URL: the database cannot be reached: {reason}") from error
