"""PostgreSQL: one pool of connections for a process, and errors without the password."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from select import POLLIN, poll
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from packetgate.state.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

MAX_CONNECTIONS = 8
"""Maximum pooled connections of a process, in addition to the connection for session locks."""
_POOL_TIMEOUT_S = 30.0
_TABLES_LOCK = 7_326_451_904
_POLL_S = 0.05

CreateTables = Callable[["AsyncConnection[Any]"], Awaitable[object]]
"""Creates missing tables; may run more than once."""


@dataclass
class _SharedPool:
    pool: "AsyncConnectionPool[AsyncConnection[Any]]"
    setting_up: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _SharedPool]] = WeakKeyDictionary()
_created: set[tuple[str, str]] = set()
"""URL and table group, for all tables that this process has created or found."""


@asynccontextmanager
async def open_pool(
    url: str, tables: str, create: CreateTables
) -> "AsyncIterator[AsyncConnectionPool[AsyncConnection[Any]]]":
    """Open the event loop's shared pool, with the named tables created; the last user closes it.

    Raises:
        ConfigError: the database cannot be reached.
    """
    with postgres_errors(url):
        from psycopg_pool import AsyncConnectionPool

        pools = _pools.setdefault(asyncio.get_running_loop(), {})
        if url not in pools:
            pool = AsyncConnectionPool(
                url,
                kwargs=_options(url),
                min_size=1,
                max_size=MAX_CONNECTIONS,
                timeout=_POOL_TIMEOUT_S,
                check=_check,
                open=False,
            )
            pools[url] = _SharedPool(pool)
        shared = pools[url]
        shared.users += 1
        try:
            async with shared.setting_up:
                if (url, tables) not in _created:
                    await _create(url, create)
                    _created.add((url, tables))
            await shared.pool.open()
            yield shared.pool
        finally:
            shared.users -= 1
            if not shared.users:
                del pools[url]
                await shared.pool.close()


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
    """Ping the server only if the socket is readable, as it is after the server has closed the connection."""
    from psycopg_pool import AsyncConnectionPool

    readable = poll()
    readable.register(connection.fileno(), POLLIN)
    if readable.poll(0):
        await AsyncConnectionPool.check_connection(connection)


def keepalive_options(url: str) -> str:
    """Return connection options with which the server notices a dead client within a minute, and drops its locks."""
    from psycopg.conninfo import conninfo_to_dict

    options = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "user_timeout": 60_000}
    own = str(conninfo_to_dict(url).get("options") or "")
    return " ".join([*(f"-c tcp_{name}={value}" for name, value in options.items()), own]).strip()


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
        raise ConfigError("PACKETGATE_DATABASE_URL needs the extra: pip install 'packetgate[postgres]'") from error
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
