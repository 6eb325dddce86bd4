"""Around every stage: its time, and word of it on the custom stream. Around every route: nothing but the event loop."""

import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Protocol, TypeVar

from langgraph.runtime import Runtime

from state.context import RoutingContext
from state.packet import CognitionPacket, PacketUpdate
from state.sections import Reasoning

R = TypeVar("R", bound=str)
P_contra = TypeVar("P_contra", bound=CognitionPacket, contravariant=True)


class Node(Protocol[P_contra]):
    """A stage as LangGraph calls it."""

    async def __call__(self, state: P_contra, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        """Run the stage."""
        ...


def staged(name: str, stage: Callable[[P_contra, Runtime[RoutingContext]], Awaitable[PacketUpdate]]) -> Node[P_contra]:
    """Return the stage with its time measured into the packet and its start and end streamed."""

    async def run(state: P_contra, *, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        runtime.stream_writer({"type": "stage_started", "stage": name})
        started = time.perf_counter()
        update = await stage(state, runtime)
        took = round((time.perf_counter() - started) * 1000, 3)
        known = 0 if "header" in update else len(state.reasoning.reflection_log)
        reasoning = _timed(update.get("reasoning", state.reasoning), known, took)
        update["reasoning"] = reasoning
        update["metrics"] = update.get("metrics", state.metrics).took(name, took)
        for entry in reasoning.reflection_log[known:]:
            runtime.stream_writer({"type": "stage_finished", "stage": name, **entry.model_dump(mode="json")})
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
