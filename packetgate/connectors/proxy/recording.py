"""Record ended calls after the client has received the answer, and store calls that wait for an answer elsewhere.

A database that cannot be written, such as a locked one, is tried again. What is still unwritten when the proxy ends, or
exceeds the queue, is lost with a line in the log; the journal holds everything that later calls depend on.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.store.base import BaseStore

from packetgate.connectors.recorded_answers import RecordedAnswers
from packetgate.connectors.sessions import Sessions
from packetgate.deciders.choosing import reflex_deciders
from packetgate.gate.journal import Entry, Journal
from packetgate.gate.proposal import Proposal
from packetgate.graph.building import LAST_STAGE, build_graph
from packetgate.graph.journal import DatabaseJournal
from packetgate.graph.leases import open_leases
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.ranking.learning import ConfirmedUse
from packetgate.ranking.store import delete_old_uses, store_use
from packetgate.state.channels import PROXY
from packetgate.state.errors import ConfigError
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Header
from packetgate.toolsets.servers.hub import McpHub

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


@asynccontextmanager
async def open_recorder(settings: Settings, hub: McpHub, journal: DatabaseJournal) -> AsyncIterator["Recorder"]:
    """Open the database and record in the background; at the end, write the waiting records.

    Raises:
        ConfigError: the database cannot be used.
    """
    async with (
        open_checkpointer(settings, DATABASE_PATIENCE_S) as checkpointer,
        open_store(settings, DATABASE_PATIENCE_S) as store,
        open_leases(settings) as leases,
    ):
        if settings.usage_days:
            await delete_old_uses(store, settings.usage_days)
        graph = build_graph(reflex_deciders(), hub, settings.usage_days, journal)
        sessions = Sessions(graph.compile(checkpointer=checkpointer, store=store), leases)
        answers = RecordedAnswers(sessions, journal, leases, PROXY)
        recorder = Recorder(sessions, store if settings.usage_days else None, journal, answers)
        writer = asyncio.create_task(recorder.run(), name="records of proxied calls")
        try:
            async with answers.run_in_background():
                yield recorder
            try:
                await asyncio.wait_for(recorder.wait_until_written(), EXIT_S)
            except TimeoutError:
                log.warning("the last calls are not recorded: the database could not be written in %d s", EXIT_S)
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)


class Recorder:
    """Writes the records of ended calls, one after the other. If too many records wait, new records are dropped."""

    def __init__(self, sessions: Sessions, store: BaseStore | None, journal: Journal, answers: RecordedAnswers) -> None:
        """`store` holds what is learned; None if the settings learn nothing."""
        self._sessions, self.store, self._journal, self.answers = sessions, store, journal, answers
        self._waiting: asyncio.Queue[tuple[Header, CognitionPacket | None, ConfirmedUse | None, tuple[Entry, ...]]]
        self._waiting = asyncio.Queue(MAX_WAITING)
        self._parked: set[str] = set()
        """Ids of parked packets. The turn that runs the answer records these packets."""

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
        self._parked.add(packet.header.packet_id)
        graph, config = self._sessions.graph, self._sessions.config(packet.header.session_id)
        await graph.aupdate_state(config, _sections(packet), as_node="review_selection")
        await graph.ainvoke(None, config, context=packet.governance.settings)
        session = packet.header.session_id
        await self.answers.note_end(session, (await self._sessions.state(session)).question, packet.governance.settings)

    async def current(self, proposal: Proposal) -> Proposal:
        """Return a parked proposal with the current state of its calls."""
        state = await self._sessions.state(proposal.facts.header.session_id)
        return proposal.with_calls(state.packet.routing.all_calls)

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
                        await store_use(self.store, header, f"{header.packet_id}-0", use)
                    if packet is not None:
                        config = self._sessions.config(header.session_id)
                        await self._sessions.graph.aupdate_state(config, _sections(packet), as_node=LAST_STAGE)
                except Exception:
                    log.exception("packet %s could not be recorded", header.packet_id)
                finally:
                    self._waiting.task_done()


def _sections(packet: CognitionPacket) -> dict[str, Any]:
    return {name: getattr(packet, name) for name in type(packet).model_fields if name != "messages"}
