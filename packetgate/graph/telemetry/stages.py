"""Around every stage: its time, and word of it to who listens. Around every route: nothing but the event loop."""

import time
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Protocol, TypeVar

from langgraph.errors import GraphBubbleUp, NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command

from packetgate.graph.telemetry.attributes import of_model
from packetgate.graph.telemetry.changes import StageChange
from packetgate.graph.telemetry.spans import guarded, record_break, record_change, stage_span
from packetgate.models.source import Named
from packetgate.state.base import TokenUsage, ms_since
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.events import StageStarted, StageStopped
from packetgate.state.packet import CognitionPacket, OpeningPacket, PacketUpdate

R = TypeVar("R", bound=str)
P_contra = TypeVar("P_contra", bound=CognitionPacket, contravariant=True)


class Node(Protocol[P_contra]):
    """A stage as LangGraph calls it."""

    async def __call__(self, state: P_contra, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        """Run the stage."""
        ...


def instrumented(
    name: str,
    stage: Callable[[P_contra, Runtime[RoutingContext]], Awaitable[PacketUpdate]],
    model: Callable[[], Awaitable[Named]] | None = None,
) -> Node[P_contra]:
    """Return the stage with its time measured into the packet, and word of it on the stream and to OpenTelemetry.

    Args:
        model: whose tokens the stage spends.
    """

    async def run(state: P_contra, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        ids = _ids(state)
        runtime.stream_writer(StageStarted(stage=name, **ids))
        with stage_span(name, ids["packet_id"]) as span:
            started = time.perf_counter()
            try:
                update = await stage(state, runtime)
            except Exception as error:
                with guarded(ids["packet_id"]):
                    stopped = StageStopped(
                        stage=name,
                        **ids,
                        reason="interrupt" if isinstance(error, GraphBubbleUp) else "error",
                        error=type(error).__qualname__,
                        usage=_spent(error),
                        duration_ms=ms_since(started),
                    )
                    runtime.stream_writer(stopped)
                    record_break(span, stopped, error, await of_model(model, stopped.usage))
                raise
            took = ms_since(started)
            known = 0 if "header" in update else len(state.reasoning.reflection_log)
            update["reasoning"] = update.get("reasoning", state.reasoning).timed(known, took)
            update["metrics"] = update.get("metrics", state.metrics).took(name, took)
            with guarded(update.get("header", state.header).packet_id):
                change = StageChange(name, state, update)
                finished = change.event(took)
                runtime.stream_writer(finished)
                record_change(span, change, finished, await of_model(model, finished.usage))
        return update

    return run


def recovering(
    name: str, stand_in: Callable[..., Awaitable[PacketUpdate]], route: Callable[[CognitionPacket], str]
) -> Callable[[CognitionPacket, NodeError, Runtime[RoutingContext]], Awaitable[Command[str]]]:
    """Return what goes on after the stage broke: `stand_in` gets the `error` and decides, told of as the stage is.

    What the broken stage spent is in the packet before that begins: word of it went out when it broke.
    """

    async def run(state: CognitionPacket, error: NodeError, runtime: Runtime[RoutingContext]) -> Command[str]:
        spent = state.metrics.spent(name, _spent(error.error))
        packet = state.merged({"metrics": spent})
        update = await instrumented(name, partial(stand_in, error=error.error))(packet, runtime=runtime)
        return Command(update=update, goto=route(packet.merged(update)))

    return run


def routed(route: Callable[[CognitionPacket], R]) -> Callable[[CognitionPacket], Awaitable[R]]:
    """Return the route as a coroutine function: LangGraph runs any other in a thread, longer than a route takes."""

    @wraps(route)
    async def run(packet: CognitionPacket) -> R:
        return route(packet)

    return run


def _ids(packet: CognitionPacket) -> dict[str, str]:
    """Return whose event it is. Before a packet is opened the header is still the last turn's."""
    if isinstance(packet, OpeningPacket):
        return {"session_id": "", "packet_id": ""}
    return {"session_id": packet.header.session_id, "packet_id": packet.header.packet_id}


def _spent(error: BaseException) -> TokenUsage:
    return error.usage if isinstance(error, DecisionError) else TokenUsage()
