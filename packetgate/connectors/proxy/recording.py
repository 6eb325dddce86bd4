"""Record ended calls after the client has received the answer: journal entries, packets and lessons.

Only calls with a question and changes have a packet, and the ranking learns only from calls in a context: the
store, and LangGraph for the packets, are opened at their first use. A database that cannot be written, such as a locked
one, is tried again. Records that are unwritten when the proxy ends, or exceed the queue, are lost, with a line in the
log; the journal contains everything that later calls depend on.
"""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from packetgate.gate.journal import Entry
from packetgate.graph.journal import DatabaseJournal
from packetgate.graph.records import prune_records
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.ranking.learning import ConfirmedUse
from packetgate.ranking.store import store_use
from packetgate.state.errors import ConfigError
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Header
from packetgate.toolsets.servers.hub import McpHub

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from packetgate.connectors.proxy.stored_calls import StoredCalls

DATABASE_PATIENCE_S = 3.0
"""Longest wait in seconds for another process that writes to the database."""
MAX_WAITING = 1_000
EXIT_S = 5.0
"""Seconds that the shutdown waits for unwritten records."""
QUIET_S = 0.1
"""Seconds between a call and its record, so that further calls are not delayed by writing."""
RETRY_S = 1.0
"""Seconds until a database that could not be written is tried again."""

log = logging.getLogger(__name__)

Opened = TypeVar("Opened")


@asynccontextmanager
async def opened_at_first_use(
    context: Callable[[], AbstractAsyncContextManager[Opened]],
) -> AsyncIterator[Callable[[], Awaitable[Opened]]]:
    """Yield a function that returns a context's value. Its first call enters the context, which ends with this one.

    If the context cannot be entered, each call tries again, and raises the error.
    """
    opening: asyncio.Task[Opened] | None = None
    here = contextvars.copy_context()  # not that of a request
    async with AsyncExitStack() as stack:

        async def opened() -> Opened:
            nonlocal opening
            if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
                opening = asyncio.create_task(stack.enter_async_context(context()), context=here.copy())
            return await asyncio.shield(opening)

        try:
            yield opened
        finally:
            if opening is not None:
                await asyncio.wait([opening])


@asynccontextmanager
async def open_recorder(settings: Settings, hub: McpHub, journal: DatabaseJournal) -> AsyncIterator["Recorder"]:
    """Open the database and record in the background; at the end, write the waiting records.

    Raises:
        ConfigError: the database cannot be used.
    """
    await journal.check()
    async with (
        opened_at_first_use(partial(_open_uses, settings)) as store,
        opened_at_first_use(partial(_open_stored_calls, settings, hub, journal, store)) as stored_calls,
    ):
        recorder = Recorder(journal, stored_calls, store if settings.usage_days else None)
        writer = asyncio.create_task(recorder.run(), name="records of proxied calls")
        try:
            yield recorder
            try:
                await asyncio.wait_for(recorder.wait_until_written(), EXIT_S)
            except TimeoutError:
                log.warning("the last calls are not recorded: the database could not be written in %d s", EXIT_S)
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)


@asynccontextmanager
async def _open_uses(settings: Settings) -> AsyncIterator["BaseStore"]:
    """Open the store of lessons, and delete old lessons."""
    await asyncio.to_thread(import_module, "langgraph.store.sqlite.aio")
    async with open_store(settings, DATABASE_PATIENCE_S) as store:
        await prune_records(store, settings.usage_days)
        yield store


@asynccontextmanager
async def _open_stored_calls(
    settings: Settings, hub: McpHub, journal: DatabaseJournal, store: Callable[[], Awaitable["BaseStore"]]
) -> AsyncIterator["StoredCalls"]:
    await asyncio.to_thread(import_module, "packetgate.connectors.proxy.stored_calls")
    from packetgate.connectors.proxy.stored_calls import open_stored_calls

    async with open_stored_calls(settings, hub, journal, await store(), DATABASE_PATIENCE_S) as stored_calls:
        yield stored_calls


class Recorder:
    """Writes the records of ended calls, one after the other. If too many records wait, new records are dropped."""

    def __init__(
        self,
        journal: DatabaseJournal,
        stored_calls: Callable[[], Awaitable["StoredCalls"]],
        store: Callable[[], Awaitable["BaseStore"]] | None,
    ) -> None:
        """`stored_calls` and `store` open their results at first use; no `store` if the settings learn nothing."""
        self._journal, self.stored_calls, self.store = journal, stored_calls, store
        self._waiting: asyncio.Queue[tuple[Header, CognitionPacket | None, ConfirmedUse | None, tuple[Entry, ...]]]
        self._waiting = asyncio.Queue(MAX_WAITING)
        self._parked: set[str] = set()
        """Ids of parked packets. The turn that runs the answer records these packets."""
        self._parking: StoredCalls | None = None
        """The store of parked calls; None if no call was parked."""

    def queue_record(
        self,
        header: Header,
        packet: CognitionPacket | None,
        use: ConfirmedUse | None,
        entries: tuple[Entry, ...],
    ) -> None:
        """Queue the packet of an ended call, if it is to be kept, its use and its journal entries."""
        if header.packet_id in self._parked:
            self._parked.discard(header.packet_id)
            return
        try:
            self._waiting.put_nowait((header, packet, use, entries))
        except asyncio.QueueFull:
            log.warning("packet %s is not recorded: too many calls at once", header.packet_id)

    async def park(self, packet: CognitionPacket) -> None:
        """Store a call that waits for an answer in its own thread, where `packetgate answer` finds it."""
        self._parking = await self.stored_calls()
        self._parked.add(packet.header.packet_id)
        await self._parking.park(packet)

    async def wait_until_idle(self, timeout_s: float) -> None:
        """Wait until no answer to a parked call runs, or for at most this time."""
        if self._parking is not None:
            await self._parking.answers.wait_until_idle(timeout_s)

    async def wait_until_written(self) -> None:
        """Wait until all records are written."""
        await self._waiting.join()

    async def run(self) -> None:
        """Write records until cancelled: the journal once for all waiting calls, then each call's packet and use."""
        while True:
            ended = [await self._waiting.get()]
            await asyncio.sleep(QUIET_S)
            while not self._waiting.empty():
                ended.append(self._waiting.get_nowait())
            unwritten = [entry for *_, entries in ended for entry in entries]
            while unwritten:
                try:
                    await self._journal.record(*unwritten)
                except ConfigError as error:
                    log.warning("the journal cannot be written, and is tried again: %s", error)
                    await asyncio.sleep(RETRY_S)
                    continue
                except Exception:
                    log.exception("the journal could not be written")
                unwritten = []
            for header, packet, use, _ in ended:
                try:
                    if self.store is not None and use is not None:
                        await store_use(await self.store(), header, f"{header.packet_id}-0", use)
                    if packet is not None:
                        await (await self.stored_calls()).save(packet)
                except Exception:
                    log.exception("packet %s could not be recorded", header.packet_id)
                finally:
                    self._waiting.task_done()
