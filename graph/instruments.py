"""Around every stage: its time, and word of it to who listens. Around every route: nothing but the event loop."""

import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from graph.changes import StageChange
from graph.telemetry import Harmless, record_break, record_change, stage_span
from state.base import TokenUsage
from state.context import RoutingContext
from state.errors import DecisionError
from state.events import StageStarted, StageStopped
from state.packet import CognitionPacket, OpeningPacket, PacketUpdate
from state.sections import Reasoning

R = TypeVar("R", bound=str)
P_contra = TypeVar("P_contra", bound=CognitionPacket, contravariant=True)


class Node(Protocol[P_contra]):
    """A stage as LangGraph calls it."""

    async def __call__(self, state: P_contra, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        """Run the stage."""
        ...


def staged(name: str, stage: Callable[[P_contra, Runtime[RoutingContext]], Awaitable[PacketUpdate]]) -> Node[P_contra]:
    """Return the stage with its time measured into the packet, and word of it on the stream and to OpenTelemetry."""

    async def run(state: P_contra, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        ids = _ids(state)
        runtime.stream_writer(StageStarted(stage=name, **ids))
        with stage_span(name, ids["packet_id"]) as span:
            started = time.perf_counter()
            try:
                update = await stage(state, runtime)
            except Exception as error:
                with Harmless(ids["packet_id"]):
                    stopped = StageStopped(stage=name, **ids, **_how(error), duration_ms=_ms_since(started))
                    runtime.stream_writer(stopped)
                    record_break(span, stopped, error)
                raise
            took = _ms_since(started)
            known = 0 if "header" in update else len(state.reasoning.reflection_log)
            update["reasoning"] = _timed(update.get("reasoning", state.reasoning), known, took)
            update["metrics"] = update.get("metrics", state.metrics).took(name, took)
            with Harmless(update.get("header", state.header).packet_id):
                change = StageChange(name, state, update)
                finished = change.event(took)
                runtime.stream_writer(finished)
                record_change(span, change, finished)
        return update

    return run


def routed(route: Callable[[CognitionPacket], R]) -> Callable[[CognitionPacket], Awaitable[R]]:
    """Return the route as a coroutine function: LangGraph runs any other in a thread, longer than a route takes."""

    @wraps(route)
    async def run(packet: CognitionPacket) -> R:
        return route(packet)

    return run


def _timed(reasoning: Reasoning, known: int, took: float) -> Reasoning:
    """Put the time on the stage's first new log entry."""
    log = reasoning.reflection_log
    if len(log) <= known:
        return reasoning
    entry = log[known].model_copy(update={"latency_ms": took})
    return reasoning.model_copy(update={"reflection_log": (*log[:known], entry, *log[known + 1 :])})


def _ids(packet: CognitionPacket) -> dict[str, str]:
    """Return whose event it is. Before a packet is opened the header is still the last turn's."""
    if isinstance(packet, OpeningPacket):
        return {"session_id": "", "packet_id": ""}
    return {"session_id": packet.header.session_id, "packet_id": packet.header.packet_id}


def _how(error: Exception) -> dict[str, Any]:
    """Return how a stage stopped: with a question, or with an error, which may have cost tokens."""
    return {
        "reason": "interrupt" if isinstance(error, GraphBubbleUp) else "error",
        "error": type(error).__qualname__,
        "usage": error.usage if isinstance(error, DecisionError) else TokenUsage(),
    }


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
