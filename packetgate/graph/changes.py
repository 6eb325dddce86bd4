"""What a stage changed, told from the packet before it and after it."""

from collections import Counter
from functools import cached_property
from typing import Any, Literal, TypeVar

from packetgate.state.base import TokenUsage
from packetgate.state.events import StageFinished
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.state.sections import Evaluation, PacketState
from packetgate.state.transitions import ToolExecutionStatus

T = TypeVar("T")

_NEW = CognitionPacket()
_NO_ROUTING = ToolRouting()
_NONE = TokenUsage()


class StageChange:
    """A packet's sections before a stage and after it. One that opens a packet starts from an empty one."""

    def __init__(self, stage: str, packet: CognitionPacket, update: PacketUpdate) -> None:
        before = _NEW if "header" in update else packet
        self.stage = stage
        self.header = update.get("header", packet.header)
        self.context = packet.context, update.get("context", packet.context)
        self.metrics = before.metrics, update.get("metrics", before.metrics)
        self.reasoning = before.reasoning, update.get("reasoning", before.reasoning)
        self.routing = before.tool_routing, update.get("tool_routing", before.tool_routing)
        self.status = update.get("status", before.status)
        self.governance = before.governance, update.get("governance", before.governance)
        self.request = update["content"].original_prompt if {"header", "content"} <= update.keys() else None
        """What was asked, where the stage opened a packet with it."""

    def ended(self, update: PacketUpdate) -> "StageChange":
        """Take the update as it is with the stage's time in it."""
        self.metrics = self.metrics[0], update["metrics"]
        self.reasoning = self.reasoning[0], update["reasoning"]
        return self

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that the stage put into another status, or made."""
        before, after = self.routing
        if after is None or after is before:
            return ()
        statuses = {call.call_id: call.status for call in before.all_calls} if before else {}
        return tuple([call for call in after.all_calls if statuses.get(call.call_id) is not call.status])

    @cached_property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The judgements made."""
        before, after = self.reasoning
        return _new(before.evaluations, after.evaluations)

    def event(self, duration_ms: float) -> StageFinished:
        """Return the event that tells the change. Most stages leave most of a packet alone, and this runs at each."""
        metrics, reasoning, routing = self.metrics, self.reasoning, self.routing
        decisions = _new(reasoning[0].reflection_log, reasoning[1].reflection_log)
        modes = [entry.decided_by for entry in decisions if entry.decided_by]
        spent = metrics[1].token_usage.get(self.stage, _NONE)
        changed: dict[str, Any] = {}
        if self.context[0].palette is not self.context[1].palette:
            changed = self._palette()
        if routing[0] is not routing[1]:
            changed |= self._routing()
        return StageFinished(
            stage=self.stage,
            session_id=self.header.session_id,
            packet_id=self.header.packet_id,
            mode=modes[0] if modes else "default",
            is_fallback=True in [entry.is_fallback for entry in decisions],
            decisions=decisions,
            duration_ms=duration_ms,
            usage=spent.since(metrics[0].token_usage.get(self.stage, _NONE)) if spent is not _NONE else _NONE,
            escalation=self._escalation(),
            reinjection_count=routing[1].reinjection_count if routing[1] else 0,
            violations=metrics[1].violations - metrics[0].violations,
            errors=_new(metrics[0].errors, metrics[1].errors),
            shift="" if self.context[0].shift == self.context[1].shift else self.context[1].shift,
            **changed,
        )

    def _palette(self) -> dict[str, Any]:
        had, has = [tuple([entry.tool_name for entry in context.palette]) for context in self.context]
        return {
            "loaded": has,
            "added": tuple([name for name in has if name not in had]),
            "removed": tuple([name for name in had if name not in has]),
        }

    def _routing(self) -> dict[str, Any]:
        before, after = self.routing[0] or _NO_ROUTING, self.routing[1] or _NO_ROUTING
        corrections = _new(before.corrections, after.corrections)
        return {
            "used": tuple([call.tool_name for call in self.calls if call.status is ToolExecutionStatus.EXECUTED]),
            "missed": _new(before.missed_tools, after.missed_tools),
            "escalated": tuple([call.tool_name for call in self.calls if call.status.awaits_user]),
            "calls": Counter([call.status.value for call in self.calls]),
            "corrections": tuple([one.problem for one in corrections if not one.mended]),
        }

    def _escalation(self) -> Literal["question", "confidence", "approval"] | None:
        if self.status.state is not PacketState.AWAITING_USER:
            return None
        statuses = {call.status for call in self.calls}
        if ToolExecutionStatus.AWAITING_CONFIDENCE in statuses:
            return "confidence"
        return "approval" if ToolExecutionStatus.AWAITING_APPROVAL in statuses else "question"


def _new(before: tuple[T, ...], after: tuple[T, ...]) -> tuple[T, ...]:
    """Return what a stage added to a record, or all of it where the stage began the record anew."""
    if after is before:
        return ()
    goes_on = len(after) > len(before) and after[: len(before)] == before
    return after[len(before) :] if goes_on else after
