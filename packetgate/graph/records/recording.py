"""The record of each turn, and of what its stages said to models, written into the graph's store.

A store that fails costs the record, never the turn.
"""

import asyncio
from itertools import count

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from packetgate.deciders.protocols import KnownAs
from packetgate.graph.records.passports import calibration_for
from packetgate.graph.records.prompts import ROOT as EXCHANGES
from packetgate.graph.records.prompts import StagePrompts, prune_prompts, save_prompts
from packetgate.graph.telemetry.spans import guarded
from packetgate.graph.telemetry.stages import Node
from packetgate.models.endpoint import Role
from packetgate.models.requests import ModelRequest, collected
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.sections import Header
from packetgate.tools.usage.calibration import Calibration
from packetgate.tools.usage.learned_store import ROOT as LEARNED
from packetgate.tools.usage.learned_store import forget, learn, read_learned
from packetgate.tools.usage.learning import Learned
from packetgate.tools.usage.record import record_of
from packetgate.tools.usage.store import ROOT as USAGE
from packetgate.tools.usage.store import delete, keep, namespace, prune

PATIENCE_S = 5.0
"""How long a turn waits for its record."""
PRUNE_EVERY = 1_000
"""Turns of one process; a graph that is opened anew prunes at once."""
CONVERSATIONS = ("serve",)
"""Where `packetgate serve` keeps by digests of a conversation which session it is of, as `session`."""
_ALL = 1_000_000


def with_usage_record(stage: Node[CognitionPacket], days: int, prompt_days: int) -> Node[CognitionPacket]:
    """Return a turn's last stage with the turn recorded after it for `days`, where the graph has a store."""
    turns = count(1)

    async def run(state: CognitionPacket, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        update = await stage(state, runtime=runtime)
        if runtime.store is not None:
            with guarded(state.header.packet_id):
                async with asyncio.timeout(PATIENCE_S):
                    if days:
                        ended = state.merged(update)
                        await keep(runtime.store, record_of(ended))
                        await learn(runtime.store, ended)
                    if next(turns) % PRUNE_EVERY == 0:
                        await _prune(runtime.store, days, prompt_days)
        return update

    return run


def with_prompt_record(name: str, role: Role, stage: Node[CognitionPacket]) -> Node[CognitionPacket]:
    """Return a stage with what it says to its model recorded, also where it then breaks."""

    async def run(state: CognitionPacket, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        with collected() as said:
            try:
                update = await stage(state, runtime=runtime)
            except Exception:
                await _keep(runtime.store, state.header, name, role, said)
                raise
        await _keep(runtime.store, state.header, name, role, said)
        return update

    return run


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


async def _keep(store: BaseStore | None, header: Header, stage: str, role: Role, said: list[ModelRequest]) -> None:
    if store is None or not said:
        return
    with guarded(header.packet_id):
        record = StagePrompts(
            session_id=header.session_id,
            packet_id=header.packet_id,
            stage=stage,
            role=role,
            at=said[0].at,
            exchanges=tuple(said),
        )
        async with asyncio.timeout(PATIENCE_S):
            await save_prompts(store, record)


async def _prune(store: BaseStore, days: int, prompt_days: int) -> None:
    if days:
        await prune(store, days)
        await prune(store, days, root=LEARNED)
    if prompt_days:
        await prune_prompts(store, prompt_days)
