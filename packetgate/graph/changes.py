"""The changes of a stage to the packet, as an event for streams and telemetry."""

from collections import Counter
from typing import Literal, TypeVar

from packetgate.state.base import TokenUsage
from packetgate.state.events import StageFinished
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.state.sections import PacketState
from packetgate.state.transitions import ToolExecutionStatus

_T = TypeVar("_T")

_EMPTY = CognitionPacket()
_NO_ROUTING = ToolRouting()
_NO_TOKENS = TokenUsage()


class StageChange:
    """The packet before and after a stage. For a stage that opens a packet, the packet before is empty."""

    def __init__(self, packet: CognitionPacket, update: PacketUpdate) -> None:
        self.is_opening = "header" in update
        self.before = _EMPTY if self.is_opening else packet
        self.after = packet.model_copy(update=dict(update))
        self.calls: tuple[ToolCall, ...] = ()
        """New calls, and calls with a new status."""
        before, after = self.before.tool_routing, self.after.tool_routing
        if after is not None and after is not before:
            statuses = {call.call_id: call.status for call in before.all_calls} if before else {}
            self.calls = tuple([call for call in after.all_calls if statuses.get(call.call_id) is not call.status])
        palettes = packet.context.palette, self.after.context.palette
        self._tools = [[entry.tool_name for entry in palette] for palette in palettes if palettes[0] is not palettes[1]]
        """The tools before and after; empty if the palette is the same."""

    def event(self, stage: str, duration_ms: float) -> StageFinished:
        """Return the stage's event. This method runs after every stage, so it must be fast."""
        before, after = self.before, self.after
        decisions = _added(before.reasoning.reflection_log, after.reasoning.reflection_log)
        modes = [entry.decided_by for entry in decisions if entry.decided_by]
        tools_before, tools_after = self._tools or ([], [])
        spent = after.metrics.token_usage.get(stage, _NO_TOKENS)
        earlier, routing = before.tool_routing or _NO_ROUTING, after.tool_routing or _NO_ROUTING
        corrections = _added(earlier.corrections, routing.corrections)
        return StageFinished(
            stage=stage,
            session_id=after.header.session_id,
            packet_id=after.header.packet_id,
            mode=modes[0] if modes else "default",
            is_fallback=True in [entry.is_fallback for entry in decisions],
            decisions=decisions,
            duration_ms=duration_ms,
            usage=spent.since(before.metrics.token_usage.get(stage, _NO_TOKENS)),
            loaded=tuple(tools_after),
            added=tuple([name for name in tools_after if name not in tools_before]),
            removed=tuple([name for name in tools_before if name not in tools_after]),
            shift="" if before.context.shift == after.context.shift else after.context.shift,
            used=tuple([call.tool_name for call in self.calls if call.status is ToolExecutionStatus.EXECUTED]),
            missed=_added(earlier.missed_tools, routing.missed_tools),
            escalated=tuple([call.tool_name for call in self.calls if call.status.awaits_user]),
            escalation=self._escalation(),
            calls=Counter([call.status.value for call in self.calls]),
            corrections=tuple([correction.problem for correction in corrections if not correction.is_repaired]),
            reinjection_count=routing.reinjection_count,
            violations=after.metrics.violations - before.metrics.violations,
            errors=_added(before.metrics.errors, after.metrics.errors),
        )

    def _escalation(self) -> Literal["question", "confidence", "approval"] | None:
        if self.after.status.state is not PacketState.AWAITING_USER:
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
