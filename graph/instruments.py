"""Around every stage: its time, and word of it on the custom stream."""

import time
from collections.abc import Awaitable, Callable

from langgraph.runtime import Runtime

from state.context import RoutingContext
from state.packet import CognitionPacket, PacketUpdate
from state.sections import Reasoning

Stage = Callable[[CognitionPacket, Runtime[RoutingContext]], Awaitable[PacketUpdate]]


def staged(name: str, stage: Stage) -> Stage:
    """Return the stage with its time measured into the packet and its start and end streamed."""

    async def run(packet: CognitionPacket, runtime: Runtime[RoutingContext]) -> PacketUpdate:
        runtime.stream_writer({"type": "stage_started", "stage": name})
        started = time.perf_counter()
        update = await stage(packet, runtime)
        took = round((time.perf_counter() - started) * 1000, 3)
        known = 0 if "header" in update else len(packet.reasoning.reflection_log)
        reasoning = _timed(update.get("reasoning", packet.reasoning), known, took)
        update["reasoning"] = reasoning
        update["metrics"] = update.get("metrics", packet.metrics).took(name, took)
        for entry in reasoning.reflection_log[known:]:
            runtime.stream_writer({"type": "stage_finished", "stage": name, **entry.model_dump(mode="json")})
        return update

    return run


def _timed(reasoning: Reasoning, known: int, took: float) -> Reasoning:
    """Put the time on the stage's first new log entry."""
    log = reasoning.reflection_log
    if len(log) <= known:
        return reasoning
    entry = log[known].model_copy(update={"latency_ms": took})
    return reasoning.model_copy(update={"reflection_log": (*log[:known], entry, *log[known + 1 :])})
