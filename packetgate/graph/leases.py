"""Session locks: one process at a time runs a session's turn. The kernel or database drops a dead process's locks.

LangGraph servers do not need them: their own queue orders the runs of a thread.
"""

import asyncio
import fcntl
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packetgate.graph.postgres import keepalive_options, postgres_errors
from packetgate.graph.private_files import private_folder
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import AsyncConnection

RETRY_S = 0.1
"""Seconds between two attempts to take a lock."""
CHECK_S = 2.0
"""Seconds between two checks of the connection that holds PostgreSQL's locks."""

_TAKE = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_RELEASE = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"


class Leases:
    """Locks for sessions that no other process can open."""

    async def take(self, session: str) -> bool:
        """Try to take a session's lock; return whether the lock was free."""
        return True

    async def release(self, session: str) -> None:
        """Release a lock."""

    async def is_taken(self, session: str) -> bool:
        """Return whether any process holds a session's lock."""
        if await self._take_unless_cancelled(session):
            await asyncio.shield(self.release(session))
            return False
        return True

    @asynccontextmanager
    async def hold(self, session: str) -> AsyncIterator[None]:
        """Wait for a session's lock, and hold it until the context ends."""
        while not await self._take_unless_cancelled(session):  # noqa: ASYNC110  no event comes from another process
            await asyncio.sleep(RETRY_S)
        try:
            yield
        finally:
            await asyncio.shield(self.release(session))

    async def _take_unless_cancelled(self, session: str) -> bool:
        taking = asyncio.create_task(self.take(session))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            if await taking:
                await self.release(session)
            raise


class _FileLeases(Leases):
    """Locks on files in a folder. A file exists while its lock is held."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    async def take(self, session: str) -> bool:
        return await asyncio.to_thread(self._take, session)

    async def release(self, session: str) -> None:
        await asyncio.to_thread(self._release, session)

    def _take(self, session: str) -> bool:
        path = self._file(session)
        try:
            private_folder(self._folder.parent)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise ConfigError(f"{path}: cannot lock sessions: {error}; set PACKETGATE_HOME") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            current = path.exists() and os.path.samestat(os.fstat(file), path.stat())
        except BlockingIOError:
            current = False
        if not current:  # locked, or deleted by the last holder
            os.close(file)
            return False
        self._held[session] = file
        return True

    def _release(self, session: str) -> None:
        self._file(session).unlink(missing_ok=True)
        os.close(self._held.pop(session))

    def _file(self, session: str) -> Path:
        return self._folder / sha256(session.encode(errors="surrogatepass")).hexdigest()[:32]


class _PostgresLeases(Leases):
    """Advisory locks on one connection. If the connection breaks, a new connection takes the locks again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: AsyncConnection[Any] | None = None
        self._held: set[str] = set()
        self._connecting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None

    async def take(self, session: str) -> bool:
        taken = await self._query(_TAKE, session)
        if taken:
            self._held.add(session)
            if self._watching is None or self._watching.done():
                self._watching = asyncio.create_task(self._reconnect_if_broken())
        return taken

    async def release(self, session: str) -> None:
        self._held.discard(session)
        await self._query(_RELEASE, session)

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def _reconnect_if_broken(self) -> None:
        """Reconnect soon after the connection breaks."""
        from psycopg import OperationalError

        while self._held:
            await asyncio.sleep(CHECK_S)
            with suppress(OperationalError):  # the next check may succeed
                await self._query("SELECT %s <> ''", "held")

    async def _query(self, sql: str, session: str) -> bool:
        from psycopg import OperationalError

        connection = await self._connect()
        try:
            answer = await (await connection.execute(sql, (session,))).fetchone()
        except OperationalError:
            if not connection.closed:
                raise
            answer = await (await (await self._connect()).execute(sql, (session,))).fetchone()
        return bool(answer and answer[0])

    async def _connect(self) -> "AsyncConnection[Any]":
        async with self._connecting:
            if self._connection is None or self._connection.closed:
                from psycopg import AsyncConnection

                options = {"application_name": "packetgate-leases", "options": keepalive_options(self._url)}
                connection = await AsyncConnection.connect(self._url, autocommit=True, **options)  # type: ignore[arg-type]
                for session in self._held:
                    answer = await (await connection.execute(_TAKE, (session,))).fetchone()
                    if not (answer and answer[0]):
                        message = "session %s: another process took its lock while the database was unreachable"
                        logging.getLogger(__name__).warning(message, session)
                self._connection = connection
            return self._connection


@asynccontextmanager
async def open_leases(settings: Settings) -> AsyncIterator[Leases]:
    """Open the locks of the sessions that the settings name.

    Raises:
        ConfigError: the database cannot be reached.
    """
    if not settings.database_url:
        yield _FileLeases(settings.home / "leases")
        return
    with postgres_errors(settings.database_url) as url:
        leases = _PostgresLeases(url)
        try:
            yield leases
        finally:
            await leases.close()
