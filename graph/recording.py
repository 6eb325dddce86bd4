"""The record of each turn, written into the graph's store once the answer stands."""

import asyncio
from itertools import count

from langgraph.runtime import Runtime

from graph.instruments import Node
from graph.telemetry import Harmless
from state.context import RoutingContext
from state.packet import CognitionPacket, PacketUpdate
from tools.usage.keeping import keep, prune
from tools.usage.record import record_of

PATIENCE_S = 5.0
"""How long an answer waits for its turn to be recorded."""
PRUNE_EVERY = 1_000
"""Turns of one process; a graph that is opened anew prunes at once."""


def recorded(stage: Node[CognitionPacket], days: int) -> Node[CognitionPacket]:
    """Return a turn's last stage with the turn recorded after it for `days`, where the graph has a store.

    A store that fails costs the record, never the turn.
    """
    turns = count(1)

    async def run(state: CognitionPacket, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        update = await stage(state, runtime=runtime)
        if runtime.store is not None and days:
            with Harmless(state.header.packet_id):
                async with asyncio.timeout(PATIENCE_S):
                    await keep(runtime.store, record_of(state.merged(update)))
                    if next(turns) % PRUNE_EVERY == 0:
                        await prune(runtime.store, days)
        return update

    return run
