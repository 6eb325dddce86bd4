"""What the proxy keeps: its database, opened beside its requests, and the records of calls that have ended.

While another process locks the database, calls that read go on. Records are written after the client has its answer. A
store that fails costs the record, never a call; what must be known before anything follows is in the journal.
"""

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
from packetgate.graph.building import LAST_STAGE, build_graph
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.state.errors import ConfigError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.execution.journal import Entry, Journal, Recorded
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.usage.learning import ConfirmedUse
from packetgate.tools.usage.record import record_of
from packetgate.tools.usage.store import LEARNED, keep, keep_use, prune

T = TypeVar("T")

log = logging.getLogger(__name__)

LOCKED_S = 3.0
"""Longest wait in seconds for another connection that writes."""
QUICK_S = 0.25
"""The same before a call that only reads."""
OPEN_S = 1.0
"""Seconds that the start waits for the database."""
AGAIN_S = 1.0
"""Seconds between attempts to write."""
MOST_LATE = 10_000
"""Most entries that wait for a locked database; older ones are dropped, and their number is logged."""


def is_locked(error: BaseException | None) -> bool:
    """Whether an error means that another connection has locked the database."""
    while error is not None:
        code = getattr(error, "sqlite_errorcode", 0) or 0
        if isinstance(error, sqlite3.Error) and code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return True
        error = error.__cause__ or error.__context__
    return False


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Run work in a task of its own, which is cancelled in the end."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@dataclass(frozen=True)
class Opened:
    """The database, opened: its sessions, and the store of uses, None where the settings record none."""

    sessions: Sessions
    used: BaseStore | None


class Storage:
    """Opens the database in the background, retrying while it is locked."""

    def __init__(self, settings: Settings, hub: McpHub, journal: Journal) -> None:
        self._settings, self._hub, self._journal = settings, hub, journal
        self._opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Storage":
        """Begin to open it. Raise ConfigError if it cannot be used, for another reason than that it is locked."""
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
        """The store of uses; None if uses are not recorded or the database is not open yet."""
        is_open = self._opened.done() and self._opened.exception() is None
        return self._opened.result().used if is_open else None

    async def opened(self, patience_s: float | None = None) -> Opened:
        """Return the database once it is open. Raise ConfigError if it is not, after so many seconds."""
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
            yield Opened(Sessions(compiled), store if settings.usage_days else None)


class LateJournal(Journal):
    """A journal for calls that only read: while the database is locked, their entries wait here, and they go on.

    What has a key is written at once or not at all, as in any journal. Entries that wait are lost with the process.
    """

    def __init__(self, quick: Journal, patient: Journal) -> None:
        self._quick, self._patient = quick, patient
        self._late: list[Entry] = []
        self._has_late = asyncio.Event()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["LateJournal"]:
        """Retry writing waiting entries, and once more at the end."""
        async with in_background(self._run(), "late journal entries"):
            yield self
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
        """Write entries, now or once the database is unlocked."""
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
        """Return the entries of one call; none while the database is locked, so that a read runs again."""
        return await self._unless_locked(self._quick.of_call(packet_id, call_id), ())

    async def of_events(self, *events: str) -> tuple[Recorded, ...]:
        """Return the entries of these events."""
        return await self._patient.of_events(*events)

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


MOST_WAITING = 1_000
EXIT_S = 5.0
"""Seconds that the end waits for records."""
QUIET_S = 0.1
"""Seconds that a record waits for further calls."""


@dataclass(frozen=True)
class _Ended:
    packet: CognitionPacket
    use: ConfirmedUse | None
    entries: tuple[Entry, ...]


class Recorder:
    """Writes records of ended calls, one after the other; if too many wait, new ones are dropped."""

    def __init__(self, storage: Storage, journal: Journal) -> None:
        self._storage, self._journal = storage, journal
        self._hurry = asyncio.Event()
        self._waiting: asyncio.Queue[_Ended] = asyncio.Queue(MOST_WAITING)
        self._parked: set[str] = set()  # packets that whoever answers them goes on with, and records

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["Recorder"]:
        """Write records in the background; at the end, wait a moment for the rest."""
        async with in_background(self._run(), "records of proxied calls"):
            yield self
            with suppress(TimeoutError):
                await asyncio.wait_for(self.written(), EXIT_S)
        if self._waiting.qsize():
            log.warning("%s records are lost: they could not be written in time", self._waiting.qsize())

    def ended(self, packet: CognitionPacket, use: ConfirmedUse | None, entries: tuple[Entry, ...] = ()) -> None:
        """Queue the packet of an ended call, its use and its journal entries."""
        if packet.header.packet_id in self._parked:
            self._parked.discard(packet.header.packet_id)
            return
        try:
            self._waiting.put_nowait(_Ended(packet, use, entries))
        except asyncio.QueueFull:
            log.warning("packet %s is not recorded: too many calls at once", packet.header.packet_id)

    async def parked(self, packet: CognitionPacket) -> None:
        """Keep a call that waits for an answer, in its own thread, where `packetgate answer` finds it.

        Raises:
            ConfigError: the database is locked.
        """
        sessions = (await self._storage.opened(LOCKED_S)).sessions
        self._parked.add(packet.header.packet_id)
        graph, config = sessions.graph, sessions.config(packet.header.session_id)
        await graph.aupdate_state(config, _sections(packet), as_node="review_selection")
        await graph.ainvoke(None, config, context=packet.governance.settings)

    async def as_it_stands(self, packet: CognitionPacket) -> CognitionPacket:
        """Return a parked packet with the current state of its call."""
        state = await (await self._storage.opened(LOCKED_S)).sessions.state(packet.header.session_id)
        call_id = packet.routing.calls[0].call_id
        now = [call for call in state.packet.routing.all_calls if call.call_id == call_id]
        return packet.merged({"tool_routing": packet.routing.with_calls(tuple(now)) if now else packet.routing})

    async def written(self) -> None:
        """Wait until all records are written."""
        self._hurry.set()
        await self._waiting.join()
        self._hurry.clear()

    async def _run(self) -> None:
        while True:
            ended = [await self._waiting.get()]
            with suppress(TimeoutError):  # calls that follow at once come before records
                await asyncio.wait_for(self._hurry.wait(), QUIET_S)
            while not self._waiting.empty():
                ended.append(self._waiting.get_nowait())
            await self._write_all(ended)

    async def _write_all(self, ended: list[_Ended]) -> None:
        try:
            if entries := [entry for one in ended for entry in one.entries]:
                await self._journal.record(*entries)
        except Exception:
            log.exception("the journal could not be written")
        for one in ended:
            try:
                await self._write(one)
            except Exception:
                log.exception("packet %s could not be recorded", one.packet.header.packet_id)
            finally:
                self._waiting.task_done()

    async def _write(self, one: _Ended) -> None:
        header, opened = one.packet.header, await self._storage.opened()
        if opened.used is not None:
            await keep(opened.used, record_of(one.packet))
            if one.use is not None:
                await keep_use(opened.used, header, f"{header.packet_id}-0", one.use)
        config = opened.sessions.config(header.session_id)
        await opened.sessions.graph.aupdate_state(config, _sections(one.packet), as_node=LAST_STAGE)


def _sections(packet: CognitionPacket) -> dict[str, Any]:
    return {name: getattr(packet, name) for name in type(packet).model_fields if name != "messages"}
