"""PostgreSQL: pools of connections, and errors without the password."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from select import POLLIN, poll
from typing import TYPE_CHECKING, Any

from packetgate.state.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection
    from psycopg_pool import AsyncConnectionPool

MAX_CONNECTIONS = 8
"""Maximum connections of a process for sessions and records. The journal and the session locks have one each."""
_POOL_TIMEOUT_S = 30.0
_TABLES_LOCK = 7_326_451_904
_POLL_S = 0.05

CreateTables = Callable[["AsyncConnection[Any]"], Awaitable[object]]
"""Creates missing tables; may run more than once."""


@asynccontextmanager
async def open_pool(url: str, create: CreateTables) -> "AsyncIterator[AsyncConnectionPool[AsyncConnection[Any]]]":
    """Open a pool of half of the process's connections, with the tables created.

    Raises:
        ConfigError: the database cannot be reached.
    """
    with postgres_errors(url):
        from psycopg_pool import AsyncConnectionPool

        await _create(url, create)
        pool = AsyncConnectionPool(
            url,
            kwargs=_options(url),
            min_size=1,
            max_size=MAX_CONNECTIONS // 2,
            timeout=_POOL_TIMEOUT_S,
            check=_check,
            open=False,
        )
        async with pool:
            yield pool


async def _create(url: str, create: CreateTables) -> None:
    """Create tables, one process at a time; polls, because a waiting statement would block index creation."""
    from psycopg import AsyncConnection

    async with await AsyncConnection.connect(url, **_options(url)) as connection:
        while True:
            taken = await connection.execute("SELECT pg_try_advisory_lock(%s) AS taken", (_TABLES_LOCK,))
            if (await taken.fetchone() or {}).get("taken"):
                await create(connection)
                return  # the lock ends with the connection
            await asyncio.sleep(_POLL_S)


async def _check(connection: "AsyncConnection[Any]") -> None:
    """Ping the server only if the connection may be closed."""
    from psycopg_pool import AsyncConnectionPool

    if is_stale(connection):
        await AsyncConnectionPool.check_connection(connection)


def is_stale(connection: "AsyncConnection[Any] | Connection[Any]") -> bool:
    """Whether a connection is closed, or has data to read, as after the server has closed it."""
    if connection.closed:
        return True
    readable = poll()
    readable.register(connection.fileno(), POLLIN)
    return bool(readable.poll(0))


def keepalive_options(url: str) -> str:
    """Return connection options with which the server notices a dead client within a minute, and drops its locks."""
    from psycopg.conninfo import conninfo_to_dict

    options = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "user_timeout": 60_000}
    url_options = str(conninfo_to_dict(url).get("options") or "")
    return " ".join([*(f"-c tcp_{name}={value}" for name, value in options.items()), url_options]).strip()


def _options(url: str) -> dict[str, Any]:
    """Return connection arguments that LangGraph's saver and store require."""
    from psycopg.rows import dict_row

    return {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row, "options": keepalive_options(url)}


@contextmanager
def postgres_errors(url: str) -> Iterator[str]:
    """Check the URL, and turn connection errors into a `ConfigError` without the password."""
    try:
        import langgraph.checkpoint.postgres  # noqa: F401
        from psycopg import OperationalError, ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
        from psycopg.errors import InsufficientPrivilege
    except ImportError as error:
        raise ConfigError(
            "PACKETGATE_DATABASE_URL needs an extra: in a clone of Packetgate, pip install '.[postgres]'"
        ) from error
    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError as error:
        raise ConfigError(
            "PACKETGATE_DATABASE_URL is not a PostgreSQL URL: use postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from error
    try:
        yield url
    except (OperationalError, InsufficientPrivilege) as error:
        user = f"{parts['user']}@" if "user" in parts else ""
        port = f":{parts['port']}" if "port" in parts else ""
        place = f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"PACKETGATE_DATABASE_URL: {place} cannot be used: {reason}; correct this or the URL, or unset it to "
            "store sessions in a file"
        ) from error
