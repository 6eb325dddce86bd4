"""The journal's entries of a stage."""

from collections.abc import Iterator
from functools import partial
from typing import TypeVar

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.execution.journal import Entry

_T = TypeVar("_T")

CALL_REVIEWED = "call_reviewed"
_EMPTY = CognitionPacket()
_PROPOSED_FIELDS = {"tool_name", "params", "risk", "open_world", "risk_reasons", "provenance"}


def entries_of(packet: CognitionPacket, update: PacketUpdate) -> Iterator[Entry]:
    """Yield the entries of a stage: request, proposals, reviews, approvals, results and question.

    They are derived from the packet and the stage's update, so that packet and journal cannot differ.
    """
    before = _EMPTY if "header" in update else packet
    after = packet.model_copy(update=dict(update))
    entry = partial(Entry, session_id=after.header.session_id, packet_id=after.header.packet_id)
    if "header" in update:
        detail = {"channel": after.header.origin, "person": after.header.person}
        yield entry("turn_opened", detail={**detail, "request": after.content.original_prompt})
    calls = _changed_calls(before, after)
    for call in calls.values():
        if call.status is ToolExecutionStatus.PENDING:
            detail = call.model_dump(mode="json", include=_PROPOSED_FIELDS)
            yield entry("call_proposed", call_id=call.call_id, detail=detail)
    log = after.reasoning.reflection_log
    for evaluation in _added(before.reasoning.evaluations, after.reasoning.evaluations):
        verdict = evaluation.model_dump(mode="json", exclude={"name", "subject"})
        verdict["by"] = (log[-1].decided_by if log else None) or ""
        if reviewed := calls.get(evaluation.subject):
            verdict |= {"tool": reviewed.tool_name, "status": reviewed.status.value}
        yield entry(CALL_REVIEWED, call_id=evaluation.subject, detail=verdict)
    approved = set()
    for approval in after.governance.approvals[len(before.governance.approvals) :]:
        event = f"call_{approval.outcome}"
        approved.add((event, approval.call_id))
        detail = approval.model_dump(mode="json", exclude={"call_id", "outcome", "at"})
        yield entry(event, call_id=approval.call_id, detail=detail)
    for audit in after.governance.audit[len(before.governance.audit) :]:
        if (audit.event, audit.call_id) not in approved:
            yield entry(audit.event, call_id=audit.call_id or "", detail={"detail": audit.detail})
    question, earlier = after.governance.question, before.governance.question
    if question is not None and (earlier is None or earlier.question_id != question.question_id):
        yield entry("question_asked", detail=question.model_dump(mode="json", exclude={"reply"}))


def _changed_calls(before: CognitionPacket, after: CognitionPacket) -> dict[str, ToolCall]:
    """Return new calls, and calls with a new status, by id."""
    if after.tool_routing is None or after.tool_routing is before.tool_routing:
        return {}
    earlier = before.tool_routing.all_calls if before.tool_routing else ()
    statuses = {call.call_id: call.status for call in earlier}
    return {
        call.call_id: call for call in after.tool_routing.all_calls if statuses.get(call.call_id) is not call.status
    }


def _added(before: tuple[_T, ...], after: tuple[_T, ...]) -> tuple[_T, ...]:
    """Return the entries that a stage appended, or all entries if the stage replaced the earlier entries."""
    if after is before:
        return ()
    appended = len(after) > len(before) and after[: len(before)] == before
    return after[len(before) :] if appended else after
