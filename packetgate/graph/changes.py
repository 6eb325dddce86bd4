"""Differences between the packet before and after a stage."""

from collections import Counter
from functools import cached_property
from typing import Any, Literal, TypeVar

from packetgate.state.base import TokenUsage
from packetgate.state.events import StageFinished
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.state.sections import Evaluation, PacketState
from packetgate.state.transitions import ToolExecutionStatus

_T = TypeVar("_T")

_EMPTY = CognitionPacket()
_NO_ROUTING = ToolRouting()
_NO_TOKENS = TokenUsage()


class StageChange:
    """Sections before and after a stage. For a stage that opens a packet, the sections before it are empty."""

    def __init__(self, stage: str, packet: CognitionPacket, update: PacketUpdate) -> None:
        before = _EMPTY if "header" in update else packet
        self.stage = stage
        self.header = update.get("header", packet.header)
        self.context = packet.context, update.get("context", packet.context)
        self.metrics = before.metrics, update.get("metrics", before.metrics)
        self.reasoning = before.reasoning, update.get("reasoning", before.reasoning)
        self.routing = before.tool_routing, update.get("tool_routing", before.tool_routing)
        self.status = update.get("status", before.status)
        self.governance = before.governance, update.get("governance", before.governance)
        self.request = update["content"].original_prompt if {"header", "content"} <= update.keys() else None
        """The request, if the stage opened a packet."""

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """New calls, and calls with a new status."""
        before, after = self.routing
        if after is None or after is before:
            return ()
        statuses = {call.call_id: call.status for call in before.all_calls} if before else {}
        return tuple([call for call in after.all_calls if statuses.get(call.call_id) is not call.status])

    @cached_property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """New judgements."""
        return _added(self.reasoning[0].evaluations, self.reasoning[1].evaluations)

    def event(self, update: PacketUpdate, duration_ms: float) -> StageFinished:
        """Return the stage's event; `update` contains its duration. It runs at every stage, so it must be fast."""
        self.metrics = self.metrics[0], update["metrics"]
        self.reasoning = self.reasoning[0], update["reasoning"]
        metrics, reasoning, routing = self.metrics, self.reasoning, self.routing
        decisions = _added(reasoning[0].reflection_log, reasoning[1].reflection_log)
        modes = [entry.decided_by for entry in decisions if entry.decided_by]
        spent = metrics[1].token_usage.get(self.stage, _NO_TOKENS)
        changed: dict[str, Any] = {}
        if self.context[0].palette is not self.context[1].palette:
            had, has = [tuple([entry.tool_name for entry in context.palette]) for context in self.context]
            added, removed = [name for name in has if name not in had], [name for name in had if name not in has]
            changed = {"loaded": has, "added": tuple(added), "removed": tuple(removed)}
        if routing[0] is not routing[1]:
            changed |= self._routing_fields()
        return StageFinished(
            stage=self.stage,
            session_id=self.header.session_id,
            packet_id=self.header.packet_id,
            mode=modes[0] if modes else "default",
            is_fallback=True in [entry.is_fallback for entry in decisions],
            decisions=decisions,
            duration_ms=duration_ms,
            usage=spent if spent is _NO_TOKENS else spent.since(metrics[0].token_usage.get(self.stage, _NO_TOKENS)),
            escalation=self._escalation(),
            reinjection_count=routing[1].reinjection_count if routing[1] else 0,
            violations=metrics[1].violations - metrics[0].violations,
            errors=_added(metrics[0].errors, metrics[1].errors),
            shift="" if self.context[0].shift == self.context[1].shift else self.context[1].shift,
            **changed,
        )

    def _routing_fields(self) -> dict[str, Any]:
        before, after = self.routing[0] or _NO_ROUTING, self.routing[1] or _NO_ROUTING
        corrections = _added(before.corrections, after.corrections)
        return {
            "used": tuple([call.tool_name for call in self.calls if call.status is ToolExecutionStatus.EXECUTED]),
            "missed": _added(before.missed_tools, after.missed_tools),
            "escalated": tuple([call.tool_name for call in self.calls if call.status.awaits_user]),
            "calls": Counter([call.status.value for call in self.calls]),
            "corrections": tuple([correction.problem for correction in corrections if not correction.mended]),
        }

    def _escalation(self) -> Literal["question", "confidence", "approval"] | None:
        if self.status.state is not PacketState.AWAITING_USER:
            return None
        statuses = {call.status for call in self.calls}
        if ToolExecutionStatus.AWAITING_CONFIDENCE in statuses:
            return "confidence"
        return "approval" if ToolExecutionStatus.AWAITING_APPROVAL in statuses else "question"


def _added(before: tuple[_T, ...], after: tuple[_T, ...]) -> tuple[_T, ...]:
    """Return the entries that a stage appended, or all entries if the stage replaced the earlier entries."""
    if after is before:
        return ()
    appended = len(after) > len(before) and after[: len(before)] == before
    return after[len(before) :] if appended else after
