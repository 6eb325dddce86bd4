"""What the proxy keeps, opened beside its requests: while another process locks the database, calls that read go on."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from langgraph.store.base import BaseStore

from packetgate.connectors.sessions import Sessions
from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.building import build_graph
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.state.errors import ConfigError
from packetgate.tools.execution.journal import Entry, Journal, Recorded
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.usage.learned_store import ROOT as LEARNED
from packetgate.tools.usage.store import prune

T = TypeVar("T")

log = logging.getLogger(__name__)

LOCKED_S = 3.0
"""Longest wait for another connection that writes."""
QUICK_S = 0.25
"""The same before a call that only reads."""
OPEN_S = 1.0
"""How long the start waits for the database."""
AGAIN_S = 1.0
"""Wait before the next attempt to write what waits."""
MOST_LATE = 10_000
"""Entries that wait for a locked database; of more, the oldest are dropped and counted in the log."""


def is_locked(error: BaseException | None) -> bool:
    """Whether an error comes from a database that another connection has locked."""
    while error is not None:
        code = getattr(error, "sqlite_errorcode", 0) or 0
        if isinstance(error, sqlite3.Error) and code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return True
        error = error.__cause__ or error.__context__
    return False


@dataclass(frozen=True)
class Opened:
    """The database, opened."""

    sessions: Sessions
    store: BaseStore
    learns: bool

    @property
    def used(self) -> BaseStore | None:
        """Where uses are recorded; None where the settings say that none are."""
        return self.store if self.learns else None


class Storage:
    """Opens the database in the background, again and again while it is locked."""

    def __init__(self, settings: Settings, hub: McpHub, journal: Journal) -> None:
        self._settings, self._hub, self._journal = settings, hub, journal
        self._opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Storage":
        """Begin to open it.

        Raises:
            ConfigError: it cannot be used, for another reason than that it is locked.
        """
        self._task = asyncio.create_task(self._run(), name="storage")
        either: list[asyncio.Future[Any]] = [self._task, self._opened]
        await asyncio.wait(either, timeout=OPEN_S, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            self._task.result()
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._closing.set()
        if self._task is not None:
            if not self._opened.done():
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def store(self) -> BaseStore | None:
        """Where uses are recorded; None where none are, or where the database is not open yet."""
        is_open = self._opened.done() and self._opened.exception() is None
        return self._opened.result().used if is_open else None

    async def opened(self, patience_s: float | None = None) -> Opened:
        """Return the database once it is open.

        Raises:
            ConfigError: it is not, after so many seconds.
        """
        try:
            async with asyncio.timeout(patience_s):
                return await asyncio.shield(self._opened)
        except TimeoutError as error:
            database = self._settings.database
            raise ConfigError(f"{database}: database is locked by another process: try again later") from error

    async def _run(self) -> None:
        while True:
            try:
                async with self._open() as opened:
                    self._opened.set_result(opened)
                    await self._closing.wait()
                    return
            except ConfigError as error:
                if self._opened.done():
                    raise
                if not is_locked(error):
                    self._opened.set_exception(error)
                    self._opened.exception()  # it is read, also if nobody asks for the database
                    raise
                log.warning("%s; calls that read go on", error)
            await asyncio.sleep(AGAIN_S)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Opened]:
        settings = self._settings
        async with open_checkpointer(settings, LOCKED_S) as checkpointer, open_store(settings, LOCKED_S) as store:
            if settings.usage_days:
                await prune(store, settings.usage_days)
                await prune(store, settings.usage_days, root=LEARNED)
            graph = build_graph(reflex_deciders(), self._hub, journal=self._journal)
            compiled = graph.compile(checkpointer=checkpointer, store=store)
            yield Opened(Sessions(compiled), store, learns=bool(settings.usage_days))


class LateJournal(Journal):
    """A journal for calls that only read: while the database is locked, their entries wait here, and they go on.

    What has a key is written at once or not at all, as in any journal. Entries that wait are lost with the process.
    """

    def __init__(self, quick: Journal, patient: Journal) -> None:
        self._quick, self._patient = quick, patient
        self._late: list[Entry] = []
        self._has_late = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "LateJournal":
        self._task = asyncio.create_task(self._run(), name="late journal entries")
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._late:
            with suppress(ConfigError):
                await self._flush()
        if self._late:
            log.warning("%s journal entries are lost: the database is locked", len(self._late))

    @property
    def is_locked(self) -> bool:
        """Whether the database was locked when it was last tried."""
        return bool(self._late)

    async def record(self, *entries: Entry) -> bool:
        """Write entries down, now or once the database is not locked any more."""
        if any(entry.key is not None for entry in entries):
            return await self._patient.record(*entries)
        if not self._late:
            try:
                return await self._quick.record(*entries)
            except ConfigError as error:
                if not is_locked(error):
                    raise
        self._late += entries
        dropped = len(self._late) - MOST_LATE
        if dropped > 0:
            log.warning("%s journal entries are lost: the database is locked", dropped)
            del self._late[:dropped]
        self._has_late.set()
        return True

    async def of_call(self, packet_id: str, call_id: str) -> tuple[Recorded, ...]:
        """Return what is written down of one call; nothing while the database is locked, so that a read runs anew."""
        return await self._unless_locked(self._quick.of_call(packet_id, call_id), ())

    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return what is written down of these events."""
        return await self._patient.of_events(*events)

    async def changed_since(self, seq: int) -> bool:
        """Whether a call that may change something started or ended since; yes, while that cannot be known."""
        return await self._unless_locked(self._quick.changed_since(seq), True)

    async def _unless_locked(self, found: Coroutine[Any, Any, T], otherwise: T) -> T:
        if self._late:
            found.close()
            return otherwise
        try:
            return await found
        except ConfigError as error:
            if not is_locked(error):
                raise
            return otherwise

    async def _run(self) -> None:
        while True:
            await self._has_late.wait()
            try:
                await self._flush()
            except ConfigError as error:
                if not is_locked(error):
                    log.exception("the journal could not be written")
                await asyncio.sleep(AGAIN_S)

    async def _flush(self) -> None:
        entries = tuple(self._late)
        await self._patient.record(*entries)
        del self._late[: len(entries)]
        if not self._late:
            self._has_late.clear()
