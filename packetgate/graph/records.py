"""Records in the graph's store: lessons from turns, and calibration curves.

If the store fails, the record is lost and the turn continues.
"""

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

from packetgate.deciders.protocols import ModelDigestSource
from packetgate.ranking.learning import LearnedUses
from packetgate.ranking.store import delete_items, delete_old_uses, delete_uses, read_learned, store_uses
from packetgate.state.packet import CognitionPacket
from packetgate.tools.calibration import Calibration, read_calibration

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

_log = logging.getLogger(__name__)
_failed: deque[str] = deque(maxlen=256)
"""Ids of packets whose first error is logged."""
TIMEOUT_S = 5.0
"""Longest wait of a turn for the store."""
PRUNE_EVERY = 1_000
"""Number of turns in a process after which old lessons are deleted."""
CONVERSATIONS = ("serve",)
"""Store namespace that maps digests of conversations, and messages on Discord, to sessions."""
_ALL = 1_000_000


def turn_recorder(days: int) -> "Callable[[CognitionPacket, BaseStore], Awaitable[None]]":
    """Return a function that stores the learned uses of a finished turn, and sometimes deletes old ones."""
    turns = count(1)

    async def record(packet: CognitionPacket, store: "BaseStore") -> None:
        async with _bounded_store_access(packet):
            await store_uses(store, packet)
            if next(turns) % PRUNE_EVERY == 0:
                await prune_records(store, days)

    return record


async def prune_records(store: "BaseStore", days: int) -> None:
    """Delete lessons older than `days`; 0 deletes none."""
    if days:
        await delete_old_uses(store, days)


async def forget_records(store: "BaseStore", session_id: str) -> None:
    """Delete all records of a session."""
    await delete_items(store, await store.asearch(CONVERSATIONS, filter={"session": session_id}, limit=_ALL))
    await delete_uses(store, session=session_id)


async def learned_for(packet: CognitionPacket, store: "BaseStore | None") -> LearnedUses | None:
    """Return the uses that the ranking learned from the user's confirmed calls; None if the store does not answer."""
    if store is not None:
        async with _bounded_store_access(packet):
            return await read_learned(store, packet.header)
    return None


async def calibration_for(
    packet: CognitionPacket, store: "BaseStore | None", model_digest: ModelDigestSource | None = None
) -> Calibration:
    """Return calibration curves: fitted to the user's answers, otherwise from the model's evaluation.

    If the store does not answer, there are none.
    """
    if store is not None:
        async with _bounded_store_access(packet):
            digest = await model_digest() if model_digest else None
            of_model = await read_calibration(store, digest) if digest else Calibration()
            curves = of_model.curves if of_model.curves and of_model.version == evidence_version() else {}
            return Calibration(curves=curves | (await read_calibration(store)).curves)
    return Calibration()


@asynccontextmanager
async def _bounded_store_access(packet: CognitionPacket) -> AsyncIterator[None]:
    """Limit the time of a store access, and log its first error."""
    packet_id = packet.header.packet_id
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield
    except Exception:  # noqa: BLE001  errors of the user's stores
        if packet_id not in _failed:
            _failed.append(packet_id)
            _log.exception("the records of packet %r are incomplete", packet_id)


@cache
def evidence_version() -> str:
    """Return a digest of the weights of the evidence: curves of other versions do not apply."""
    from packetgate.deciders.language.evidence import EVIDENCE_FITTED  # slow to load

    return hashlib.sha256(EVIDENCE_FITTED.read_bytes()).hexdigest()[:16]
