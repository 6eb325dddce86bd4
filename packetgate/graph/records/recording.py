"""The record of each turn, and of what its stages said to models, written into the graph's store.

A store that fails costs the record, never the turn.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

from langgraph.store.base import BaseStore

from packetgate.deciders.protocols import KnownAs
from packetgate.graph.records.passports import calibration_for
from packetgate.graph.records.prompts import ROOT as EXCHANGES
from packetgate.graph.records.prompts import StagePrompts, prune_prompts, save_prompts
from packetgate.graph.telemetry import guarded
from packetgate.models.endpoint import Role
from packetgate.models.requests import ModelRequest
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Header
from packetgate.tools.usage.calibration import Calibration
from packetgate.tools.usage.learning import Learned
from packetgate.tools.usage.record import record_of
from packetgate.tools.usage.store import LEARNED, USAGE, delete, forget, keep, learn, namespace, prune, read_learned

PATIENCE_S = 5.0
"""How long a turn waits for its record."""
PRUNE_EVERY = 1_000
"""Turns of one process; a graph that is opened anew prunes at once."""
CONVERSATIONS = ("serve",)
"""Where `packetgate serve` keeps by digests of a conversation which session it is of, as `session`."""
_ALL = 1_000_000


def turn_recorder(days: int, prompt_days: int) -> Callable[[CognitionPacket, BaseStore], Awaitable[None]]:
    """Return what records a turn that has ended, for `days`, and deletes what is too old now and then."""
    turns = count(1)

    async def record(ended: CognitionPacket, store: BaseStore) -> None:
        with guarded(ended.header.packet_id):
            async with asyncio.timeout(PATIENCE_S):
                if days:
                    await keep(store, record_of(ended))
                    await learn(store, ended)
                if next(turns) % PRUNE_EVERY == 0:
                    await prune_records(store, days, prompt_days)

    return record


async def record_requests(
    header: Header, stage: str, requests: list[ModelRequest], store: BaseStore, *, role: Role
) -> None:
    """Record what a stage of a packet said to the model of that role."""
    with guarded(header.packet_id):
        record = StagePrompts(
            session_id=header.session_id,
            packet_id=header.packet_id,
            stage=stage,
            role=role,
            at=requests[0].at,
            exchanges=tuple(requests),
        )
        async with asyncio.timeout(PATIENCE_S):
            await save_prompts(store, record)


async def prune_records(store: BaseStore, days: int, prompt_days: int) -> None:
    """Delete what is older than so many days, of turns and what they taught, and of requests; 0: nothing."""
    if days:
        await prune(store, days)
        await prune(store, days, root=LEARNED)
    if prompt_days:
        await prune_prompts(store, prompt_days)


async def forget_records(store: BaseStore, session_id: str) -> None:
    """Delete what is on record of a session: its turns, what was said to models, what it taught, and by what a client
    of `packetgate serve` finds it.
    """
    for root in (USAGE, EXCHANGES):
        await delete(store, await store.asearch(namespace(root, session_id), limit=_ALL))
    await delete(store, await store.asearch(CONVERSATIONS, filter={"session": session_id}, limit=_ALL))
    await forget(store, session=session_id)


async def learned_by(packet: CognitionPacket, store: BaseStore | None) -> Learned | None:
    """Return what the user's confirmed calls have taught; None where nothing is kept or the store does not answer."""
    learned = None
    if store is not None:
        with guarded(packet.header.packet_id):
            async with asyncio.timeout(PATIENCE_S):
                learned = await read_learned(store, packet.header)
    return learned


async def calibration_by(
    packet: CognitionPacket, store: BaseStore | None, known_as: KnownAs | None = None
) -> Calibration:
    """Return the curves that the user's answers gave, and the evaluation of the model that decides.

    There are none where nothing is kept or the store does not answer.
    """
    if store is not None:
        with guarded(packet.header.packet_id):
            async with asyncio.timeout(PATIENCE_S):
                return await calibration_for(store, known_as)
    return Calibration()
