"""The changes of a stage to the packet, as entries for the journal."""

from collections.abc import Iterator
from functools import partial
from typing import TypeVar

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Evaluation
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.execution.journal import Entry

_T = TypeVar("_T")

CALL_REVIEWED = "call_reviewed"
_EMPTY = CognitionPacket()
_PROPOSED_FIELDS = {"tool_name", "params", "risk", "open_world", "risk_reasons", "provenance"}


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
        self.evaluations: tuple[Evaluation, ...] = _added(
            self.before.reasoning.evaluations, self.after.reasoning.evaluations
        )
        """New reviews."""

    def entries(self) -> Iterator[Entry]:
        """Yield the journal's entries: request, proposals, reviews, approvals, results and question.

        They are derived from the packet, so that packet and journal cannot differ.
        """
        header, before, after = self.after.header, self.before.governance, self.after.governance
        entry = partial(Entry, session_id=header.session_id, packet_id=header.packet_id)
        if self.is_opening:
            request = {"channel": header.origin, "person": header.person, "request": self.after.content.original_prompt}
            yield entry("turn_opened", detail=request)
        for call in self.calls:
            if call.status is ToolExecutionStatus.PENDING:
                detail = call.model_dump(mode="json", include=_PROPOSED_FIELDS)
                yield entry("call_proposed", call_id=call.call_id, detail=detail)
        log = self.after.reasoning.reflection_log
        for evaluation in self.evaluations:
            verdict = evaluation.model_dump(mode="json", exclude={"name", "subject"})
            verdict["by"] = (log[-1].decided_by if log else None) or ""
            for call in self.calls:
                if call.call_id == evaluation.subject:
                    verdict |= {"tool": call.tool_name, "status": call.status.value}
            yield entry(CALL_REVIEWED, call_id=evaluation.subject, detail=verdict)
        approved = set()
        for approval in after.approvals[len(before.approvals) :]:
            event = f"call_{approval.outcome}"
            approved.add((event, approval.call_id))
            detail = approval.model_dump(mode="json", exclude={"call_id", "outcome", "at"})
            yield entry(event, call_id=approval.call_id, detail=detail)
        for audit in after.audit[len(before.audit) :]:
            if (audit.event, audit.call_id) not in approved:
                yield entry(audit.event, call_id=audit.call_id or "", detail={"detail": audit.detail})
        question = after.question
        if question is not None and (before.question is None or before.question.question_id != question.question_id):
            yield entry("question_asked", detail=question.model_dump(mode="json", exclude={"reply"}))


def _added(before: tuple[_T, ...], after: tuple[_T, ...]) -> tuple[_T, ...]:
    """Return the entries that a stage appended, or all entries if the stage replaced the earlier entries."""
    if after is before:
        return ()
    appended = len(after) > len(before) and after[: len(before)] == before
    return after[len(before) :] if appended else after
