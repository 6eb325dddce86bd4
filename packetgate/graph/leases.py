"""Who runs a session's turn: one process at a time, by a lock that the kernel or the database drops when it dies.

A LangGraph server needs none of it: runs of one thread wait in its own queue.
"""

import asyncio
import fcntl
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packetgate.graph.postgres import noticed, reached_postgres
from packetgate.graph.private import private_folder
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import AsyncConnection

log = logging.getLogger(__name__)

RETRY_S = 0.1
"""Between two looks whether a session is free; nobody is told when it is, nor in which order they asked."""

LOOK_S = 2.0
"""Between two looks whether the connection still is that holds locks of PostgreSQL: nobody tells when it breaks."""

_TAKE = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"


class Leases(ABC):
    """Locks of sessions, of which this process holds some."""

    @abstractmethod
    async def take(self, session: str) -> bool:
        """Take a session's lock, unless somebody has it; return whether it is taken now."""

    @abstractmethod
    async def give_back(self, session: str) -> None:
        """Give back a lock that was taken."""

    async def is_taken(self, session: str) -> bool:
        """Whether somebody has a session's lock."""
        if await self._taken(session):
            await asyncio.shield(self.give_back(session))
            return False
        return True

    @asynccontextmanager
    async def held(self, session: str) -> AsyncIterator[None]:
        """Hold a session's lock, once nobody else does: however long that takes, it can be cancelled."""
        while not await self._taken(session):  # noqa: ASYNC110  no event comes from another process
            await asyncio.sleep(RETRY_S)
        try:
            yield
        finally:
            await asyncio.shield(self.give_back(session))

    async def _taken(self, session: str) -> bool:
        """Take a session's lock; whoever is cancelled meanwhile has not got it."""
        taking = asyncio.create_task(self.take(session))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            if await taking:
                await self.give_back(session)
            raise


class FileLeases(Leases):
    """Locks on files in a folder, a file a session, which is there as long as its lock is held."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    async def take(self, session: str) -> bool:
        """Take a session's lock, unless somebody has it."""
        return await asyncio.to_thread(self._take, session)

    async def give_back(self, session: str) -> None:
        """Give back a lock that was taken."""
        await asyncio.to_thread(self._give_back, session)

    def _take(self, session: str) -> bool:
        path = self._file(session)
        try:
            private_folder(self._folder.parent)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise ConfigError(f"{path}: cannot keep turns apart: {error}; set PACKETGATE_HOME") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            current = path.exists() and os.path.samestat(os.fstat(file), path.stat())
        except BlockingIOError:
            current = False
        if not current:  # somebody has it, or had it and took the file away
            os.close(file)
            return False
        self._held[session] = file
        return True

    def _give_back(self, session: str) -> None:
        self._file(session).unlink(missing_ok=True)
        os.close(self._held.pop(session))

    def _file(self, session: str) -> Path:
        return self._folder / sha256(session.encode(errors="surrogatepass")).hexdigest()[:32]


class PostgresLeases(Leases):
    """Advisory locks, all held by one connection of this process; where it breaks, another takes them anew."""

    def __init__(self, connect: "Callable[[], Awaitable[AsyncConnection[Any]]]") -> None:
        self._connect = connect
        self._connection: AsyncConnection[Any] | None = None
        self._held: set[str] = set()
        self._renewing = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    async def take(self, session: str) -> bool:
        """Take a session's lock, unless somebody has it."""
        taken = await self._asked(_TAKE, session)
        if taken:
            self._held.add(session)
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
        return taken

    async def give_back(self, session: str) -> None:
        """Give back a lock that was taken."""
        self._held.discard(session)
        await self._asked("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", session)

    async def close(self) -> None:
        """Give everything back."""
        if self._looking is not None:
            self._looking.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def _look(self) -> None:
        """See to it, as long as locks are held, that a connection holds them."""
        from psycopg import OperationalError

        while self._held:
            await asyncio.sleep(LOOK_S)
            with suppress(OperationalError):  # the database is away: the next look may find it
                await self._asked("SELECT %s <> ''", "held")

    async def _asked(self, sql: str, session: str) -> bool:
        from psycopg import OperationalError

        connection = await self._renewed()
        try:
            answer = await (await connection.execute(sql, (session,))).fetchone()
        except OperationalError:
            if not connection.closed:
                raise
            answer = await (await (await self._renewed()).execute(sql, (session,))).fetchone()
        return bool(answer and answer[0])

    async def _renewed(self) -> "AsyncConnection[Any]":
        """Return a connection that holds what this process holds, as far as nobody took it since the last one broke."""
        async with self._renewing:
            if self._connection is None or self._connection.closed:
                connection = await self._connect()
                for session in self._held:
                    answer = await (await connection.execute(_TAKE, (session,))).fetchone()
                    if not (answer and answer[0]):
                        log.warning("session %s: another process took its turn while the database was away", session)
                self._connection = connection
            return self._connection


class NoLeases(Leases):
    """Nobody but this process runs turns here."""

    async def take(self, session: str) -> bool:
        """Take nothing."""
        return True

    async def give_back(self, session: str) -> None:
        """Give nothing back."""


@asynccontextmanager
async def open_leases(settings: Settings) -> AsyncIterator[Leases]:
    """Open the locks of the sessions that the settings name.

    Raises:
        ConfigError: the database cannot be reached.
    """
    if not settings.database_url:
        yield FileLeases(settings.home / "leases")
        return
    with reached_postgres(settings.database_url) as url:
        leases = PostgresLeases(partial(_connected, url))
        try:
            yield leases
        finally:
            await leases.close()


async def _connected(url: str) -> "AsyncConnection[Any]":
    """Return a connection for locks alone."""
    from psycopg import AsyncConnection

    name = "packetgate-leases"
    return await AsyncConnection.connect(url, autocommit=True, application_name=name, options=noticed(url))
