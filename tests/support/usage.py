"""Records of turns, and a graph that records them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Barrier
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from support.confirmed_reads import confirming_preferences
from support.graphs import Session
from support.notebook import Notebook

from packetgate.deciders.protocols import Deciders
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.state.base import ConfidenceSource, now
from packetgate.state.context import RoutingContext
from packetgate.state.routing import Risk
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.servers.hub import McpHub
from packetgate.tools.usage.record import CallRecord, UsageRecord
from packetgate.tools.usage.store import store_record

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def used(tool: str, status: ToolExecutionStatus = ToolExecutionStatus.EXECUTED, **more: Any) -> CallRecord:
    """Return the record of a call."""
    return CallRecord(
        tool=tool,
        risk=Risk.READ,
        selection_confidence=0.9,
        selection_confidence_source=ConfidenceSource.RULE,
        status=status,
        **more,
    )


def turn(packet_id: str, *calls: CallRecord, session: str = "s", days_ago: float = 0.0) -> UsageRecord:
    """Return the record of a turn."""
    return UsageRecord(
        session_id=session,
        packet_id=packet_id,
        at=now() - timedelta(days=days_ago),
        asked="Read the plan",
        context_type="general",
        access=Access.READ,
        outcome="call" if calls else None,
        calls=calls,
    )


@asynccontextmanager
async def recording(
    deciders: Deciders,
    store: BaseStore | None,
    notebook: Notebook,
    *,
    usage_days: int = 90,
    prompt_days: int = 7,
    **context: Any,
) -> AsyncIterator[Session]:
    """Open a session on a graph with a store; its checkpoints stay in memory."""
    async with McpHub([notebook.connection()], preferences=confirming_preferences()) as hub:
        builder = build_graph(deciders, hub, usage_days, prompt_days)
        graph = builder.compile(checkpointer=InMemorySaver(serde=PacketSerializer()), store=store)
        yield Session(graph, RoutingContext(**context))


def record_many(settings: Settings, session: str, count: int, together: Barrier) -> None:
    """Open the database at the same time as other processes, and record turns one after the other."""
    together.wait()
    asyncio.run(_record_many(settings, session, count))


async def _record_many(settings: Settings, session: str, count: int) -> None:
    async with open_checkpointer(settings), open_store(settings) as store:
        for number in range(count):
            await store_record(store, turn(f"{session}-{number}", used("ai.read"), session=session))
