"""Wraps nodes: dependencies, duration, journal entries, records and events of a stage."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore

from packetgate.gate.journal import Journal
from packetgate.graph.checkpoints import check_journal
from packetgate.graph.event_loops import LoopThread
from packetgate.graph.thread_messages import with_results, with_thread_messages
from packetgate.state.base import TokenUsage, ms_since
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import DecisionError
from packetgate.state.events import StageFinished, StageStarted, StageStopped
from packetgate.state.packet import CognitionPacket, OpeningPacket, PacketUpdate
from packetgate.state.private_names import checkpointer_of, runs_in_parent
from packetgate.tools.catalogue.toolbox import AllowedTools
from packetgate.tools.text.result_store import session_results


@dataclass(frozen=True, eq=False)
class Stage(Runnable[CognitionPacket, PacketUpdate]):
    """Runs a node with its dependencies, as a LangChain runnable that LangGraph can call."""

    name: str
    node: Callable[..., Awaitable[PacketUpdate]]
    journal: Journal
    node_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the node."""
    settings: RoutingContext | None = None
    """Default settings if the graph is a node of another graph."""
    record_turn: Callable[[CognitionPacket, BaseStore], Awaitable[None]] | None = None
    """Records the turn after the stage that ends it."""
    loop: LoopThread = field(default_factory=LoopThread)
    """Runs the stage for synchronous callers."""

    def invoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> PacketUpdate:  # noqa: A002
        """Run the stage from sync code and return its update."""
        return self.loop.run(self.ainvoke(input, config))

    async def ainvoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> PacketUpdate:  # noqa: A002
        """Return the stage's update with its duration; journal entries are written before the next stage starts."""
        packet, runtime = input, get_runtime(RoutingContext)
        names = {"stage": self.name, "session_id": packet.header.session_id, "packet_id": packet.header.packet_id}
        if isinstance(packet, OpeningPacket):  # the header is still the last turn's
            names |= {"session_id": "", "packet_id": ""}
        runtime.stream_writer(StageStarted(**names))
        started = time.perf_counter()
        try:
            settings = routing_context(runtime.context, self.settings)
            if not settings.is_dry_run:
                check_journal(self.journal, checkpointer_of(config))
            arguments = self._arguments(packet, settings)
            with session_results(packet.header.session_id):
                update = await self.node(packet, runtime.override(context=settings), **arguments)
            duration_ms = ms_since(started)
            before = CognitionPacket() if "header" in update else packet
            earlier = len(before.reasoning.reflection_log)
            update["reasoning"] = update.get("reasoning", packet.reasoning).with_duration(earlier, duration_ms)
            update["metrics"] = update.get("metrics", packet.metrics).with_time(self.name, duration_ms)
            if entries := update.pop("entries", ()):
                await self.journal.record(*entries)
        except Exception as error:
            usage = error.usage if isinstance(error, DecisionError) else TokenUsage()
            stopped = StageStopped(
                **names,
                **dict(usage),
                reason="interrupt" if isinstance(error, GraphBubbleUp) else "error",
                error=type(error).__qualname__,
                duration_ms=ms_since(started),
            )
            runtime.stream_writer(stopped)
            raise
        header = update.get("header", packet.header)
        spent_before = before.metrics.token_usage.get(self.name, TokenUsage())
        spent = update["metrics"].token_usage.get(self.name, TokenUsage())
        finished = StageFinished(
            stage=self.name,
            session_id=header.session_id,
            packet_id=header.packet_id,
            **dict(spent.since(spent_before)),
            decisions=update["reasoning"].reflection_log[earlier:],
            duration_ms=duration_ms,
        )
        runtime.stream_writer(finished)
        update = with_thread_messages(packet, update)
        if self.name == "respond" and runs_in_parent(runtime.execution_info):
            update = with_results(packet, update)
        if self.record_turn and runtime.store is not None:
            await self.record_turn(packet.with_update(update), runtime.store)
        return update

    def _arguments(self, packet: CognitionPacket, settings: RoutingContext) -> dict[str, Any]:
        """Return the node's arguments; the toolbox is filtered by the allow-lists of the packet and of the run."""
        arguments = dict(self.node_arguments)
        if "toolbox" in arguments:
            of_turn, origin = packet.governance.settings, packet.header.origin
            if isinstance(packet, OpeningPacket):  # the rest of the packet is the last turn's
                of_turn, origin = settings, packet.request.origin
            for allowed in [of_turn] if settings == of_turn else [of_turn, settings]:
                arguments["toolbox"] = AllowedTools(arguments["toolbox"], allowed, origin)
        return arguments


@dataclass(frozen=True, eq=False)
class InlineNode(Runnable[CognitionPacket, Any]):
    """Calls a plain function of the packet on the event loop. LangGraph would call it in a thread, which is slower."""

    function: Callable[[CognitionPacket], Any]
    name: str

    def invoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Call the function."""
        return self.function(input)

    async def ainvoke(self, input: CognitionPacket, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Call the function."""
        return self.function(input)
