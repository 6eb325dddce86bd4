"""What is kept of a call that has ended: its packet, for `packetgate trace`; its record; and what it teaches.

That is written after the client has its answer. A store that fails costs the record, never a call; what must be known
before anything follows from a call stands in the journal.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from packetgate.connectors.proxy.storage import LOCKED_S, Storage
from packetgate.graph.building import LAST
from packetgate.state.packet import CognitionPacket
from packetgate.tools.execution.journal import Entry, Journal
from packetgate.tools.usage.learned_store import keep_use
from packetgate.tools.usage.learning import ConfirmedUse
from packetgate.tools.usage.record import record_of
from packetgate.tools.usage.store import keep

log = logging.getLogger(__name__)

MOST_WAITING = 1_000
EXIT_S = 5.0
"""How long the end waits for records."""
QUIET_S = 0.1
"""How long a record waits: calls often come in rows."""


@dataclass(frozen=True)
class _Ended:
    packet: CognitionPacket
    use: ConfirmedUse | None
    entries: tuple[Entry, ...]


class Recorder:
    """Writes what has ended, one after the other; of too many that wait, the next is left out."""

    def __init__(self, storage: Storage, journal: Journal) -> None:
        self._storage = storage
        self._journal = journal
        self._hurry = asyncio.Event()
        """Set where somebody waits for what is written."""
        self._waiting: asyncio.Queue[_Ended] = asyncio.Queue(MOST_WAITING)
        self._parked: set[str] = set()
        """Packets that whoever answers them goes on with, and records."""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Recorder":
        self._task = asyncio.create_task(self._run(), name="records of proxied calls")
        return self

    async def __aexit__(self, *_error: object) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.written(), EXIT_S)
        if self._waiting.qsize():
            log.warning("%s records are lost: they could not be written in time", self._waiting.qsize())
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def ended(self, packet: CognitionPacket, use: ConfirmedUse | None, entries: tuple[Entry, ...] = ()) -> None:
        """Have the packet of a call kept, what it teaches, and what is to be written down beside its end."""
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
        """Return a parked packet with what has become of its call since."""
        state = await (await self._storage.opened(LOCKED_S)).sessions.state(packet.header.session_id)
        call_id = packet.routing.calls[0].call_id
        now = [call for call in state.packet.routing.all_calls if call.call_id == call_id]
        return packet.merged({"tool_routing": packet.routing.with_calls(tuple(now)) if now else packet.routing})

    async def written(self) -> None:
        """Wait until all is written."""
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
            await self._written_down(ended)

    async def _written_down(self, ended: list[_Ended]) -> None:
        try:
            entries = [entry for one in ended for entry in one.entries]
            if entries:
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
        await opened.sessions.graph.aupdate_state(config, _sections(one.packet), as_node=LAST)


def _sections(packet: CognitionPacket) -> dict[str, Any]:
    """Return a packet as an update of a thread."""
    return {name: getattr(packet, name) for name in type(packet).model_fields if name != "messages"}
