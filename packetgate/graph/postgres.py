"""PostgreSQL for a process: one bounded pool of connections, tables made once, errors without the password."""

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

MOST_CONNECTIONS = 8
"""Of a process at once, beside the one that holds its leases and those that make tables when it starts."""
PATIENCE_S = 30.0
"""Longest wait for one of them."""
_TABLES_LOCK = 7_326_451_904
_POLL_S = 0.05

SetUp = Callable[["AsyncConnection[Any]"], Awaitable[object]]
"""Makes tables that are not there; with what is there already it does nothing."""


@dataclass
class _Shared:
    pool: "AsyncConnectionPool[AsyncConnection[Any]]"
    making: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Shared]] = WeakKeyDictionary()
_made: set[tuple[str, str]] = set()
"""What this process knows to be there: a URL, and the name of some tables."""


@asynccontextmanager
async def pooled(url: str, tables: str, set_up: SetUp) -> "AsyncIterator[AsyncConnectionPool[AsyncConnection[Any]]]":
    """Return the pool that all of this event loop share, with some tables there; whoever leaves last closes it.

    Raises:
        ConfigError: the database cannot be reached.
    """
    with reached_postgres(url):
        from psycopg_pool import AsyncConnectionPool

        pools = _open.setdefault(asyncio.get_running_loop(), {})
        if url not in pools:
            pools[url] = _Shared(
                AsyncConnectionPool(
                    url,
                    kwargs=_options(url),
                    min_size=1,
                    max_size=MOST_CONNECTIONS,
                    timeout=PATIENCE_S,
                    check=_still_open,
                    open=False,
                )
            )
        shared = pools[url]
        shared.users += 1
        try:
            async with shared.making:
                if (url, tables) not in _made:
                    await _make(url, set_up)
                    _made.add((url, tables))
            await shared.pool.open()
            yield shared.pool
        finally:
            shared.users -= 1
            if not shared.users:
                del pools[url]
                await shared.pool.close()


async def _make(url: str, set_up: SetUp) -> None:
    """Make tables, one process at a time. None waits in the database: an index made there would wait for it in turn."""
    from psycopg import AsyncConnection

    async with await AsyncConnection.connect(url, **_options(url)) as connection:
        while True:
            taken = await connection.execute("SELECT pg_try_advisory_lock(%s) AS taken", (_TABLES_LOCK,))
            if (await taken.fetchone() or {}).get("taken"):
                await set_up(connection)
                return  # and the lock ends with the connection
            await asyncio.sleep(_POLL_S)


async def _still_open(connection: "AsyncConnection[Any]") -> None:
    """Raise where the database has closed a connection: it has said so then. To ask it every time is a round trip."""
    from psycopg_pool import AsyncConnectionPool

    heard = poll()
    heard.register(connection.fileno(), POLLIN)
    if heard.poll(0):
        await AsyncConnectionPool.check_connection(connection)


def noticed(url: str) -> str:
    """Return the options of a connection whose end the database notices within a minute, though its machine died.

    Else what it has locked would stay so for hours.
    """
    from psycopg.conninfo import conninfo_to_dict

    after = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "user_timeout": 60_000}
    given = str(conninfo_to_dict(url).get("options") or "")
    return " ".join([*(f"-c tcp_{name}={value}" for name, value in after.items()), given]).strip()


def _options(url: str) -> dict[str, Any]:
    """Return how a connection behaves, as LangGraph's saver and store want it."""
    from psycopg.rows import dict_row

    return {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row, "options": noticed(url)}


@contextmanager
def reached_postgres(url: str) -> Iterator[str]:
    """Check the URL, and say of a database that cannot be used why not.

    Raises:
        ConfigError: it is no URL, or the database cannot be reached.
    """
    try:
        import langgraph.checkpoint.postgres  # noqa: F401
        from psycopg import OperationalError, ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
        from psycopg.errors import InsufficientPrivilege
    except ImportError as error:
        raise ConfigError("PACKETGATE_DATABASE_URL needs the extra: pip install 'packetgate[postgres]'") from error
    try:
        where = conninfo_to_dict(url)
    except ProgrammingError as error:  # its text would show the URL, and with it the password
        raise ConfigError(
            "PACKETGATE_DATABASE_URL is no PostgreSQL URL: use postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from error
    try:
        yield url
    except (OperationalError, InsufficientPrivilege) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"PACKETGATE_DATABASE_URL: {_shown(where)} cannot be used: {reason}; mend that or the URL: without one, "
            "sessions are kept in a file"
        ) from error


def _shown(where: dict[str, Any]) -> str:
    """Return where a database is, without its password."""
    user = f"{where['user']}@" if "user" in where else ""
    port = f":{where['port']}" if "port" in where else ""
    return f"postgresql://{user}{where.get('host', '')}{port}/{where.get('dbname', '')}"
