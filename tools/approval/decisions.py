"""What the user's word does to the packet."""

from typing import Any

from state.errors import RequestError
from state.packet import CognitionPacket, PacketUpdate
from state.routing import ToolCall, ToolExecutionStatus
from state.sections import Approval, ApprovalOutcome, AuditEntry
from tools.approval.questions import Reply, parse_replies
from tools.catalogue.catalogue import Catalogue
from tools.checks.provenance import USER
from tools.checks.validation import check_call

_STATUS = {
    ApprovalOutcome.APPROVED: ToolExecutionStatus.APPROVED,
    ApprovalOutcome.EDITED: ToolExecutionStatus.APPROVED,
    ApprovalOutcome.DENIED: ToolExecutionStatus.USER_DENIED,
    ApprovalOutcome.ANSWERED: ToolExecutionStatus.SKIPPED,
    ApprovalOutcome.SKIPPED: ToolExecutionStatus.SKIPPED,
    ApprovalOutcome.EXPIRED: ToolExecutionStatus.SKIPPED,
}
_WHY = {
    ApprovalOutcome.ANSWERED: "you said something else instead",
    ApprovalOutcome.SKIPPED: "you skipped it",
    ApprovalOutcome.EXPIRED: "the question lapsed before it was answered",
}


def apply_replies(packet: CognitionPacket, reply: Any, catalogue: Catalogue) -> PacketUpdate:
    """Return what a reply to the pending approval changes.

    Raises:
        RequestError: the reply cannot be read, or an edited call is not valid.
    """
    waiting = [call for call in packet.routing.calls if call.status.awaits_user]
    replies = dict(zip((call.call_id for call in waiting), parse_replies(reply, len(waiting)), strict=True))
    return _decided(packet, replies, catalogue)


def expired(packet: CognitionPacket) -> PacketUpdate:
    """Return what it changes that the question lapsed: nothing that waited may run."""
    if packet.routing.outcome == "clarify":
        return _unanswered(packet, "the question lapsed before it was answered")
    lapsed = Reply(ApprovalOutcome.EXPIRED)
    return _decided(packet, {call.call_id: lapsed for call in packet.routing.calls if call.status.awaits_user}, None)


def answered(packet: CognitionPacket, answer: str | None) -> PacketUpdate:
    """Return what an answer to a question changes: it becomes the user's own words. None means that they gave none."""
    if answer is None:
        return _unanswered(packet, "you did not answer the question")
    return {
        "tool_routing": packet.routing.model_copy(update={"outcome": "pending", "question": None}),
        "content": packet.content.model_copy(update={"clarifications": (*packet.content.clarifications, answer)}),
    }


def _unanswered(packet: CognitionPacket, why: str) -> PacketUpdate:
    update = {"outcome": "none", "question": None, "pass_status": ToolExecutionStatus.SKIPPED, "note": why}
    return {"tool_routing": packet.routing.model_copy(update=update)}


def _decided(packet: CognitionPacket, replies: dict[str, Reply], catalogue: Catalogue | None) -> PacketUpdate:
    calls = tuple(
        _after(call, replies[call.call_id], packet, catalogue) if call.call_id in replies else call
        for call in packet.routing.calls
    )
    approvals = tuple(
        Approval(
            call_id=call.call_id,
            tool_name=call.tool_name,
            params=call.params,
            outcome=replies[call.call_id].outcome,
            comment=replies[call.call_id].comment,
        )
        for call in calls
        if call.call_id in replies
    )
    trail = tuple(
        AuditEntry(event=f"call_{one.outcome}", detail=f"{one.tool_name} {one.comment}".strip(), call_id=one.call_id)
        for one in approvals
    )
    words = [one.comment for one in replies.values() if one.outcome is ApprovalOutcome.ANSWERED]
    governance = packet.governance
    return {
        "tool_routing": packet.routing.model_copy(update={"calls": calls}),
        "governance": governance.model_copy(
            update={"approvals": governance.approvals + approvals, "audit": governance.audit + trail}
        ),
        "content": packet.content.model_copy(
            update={"clarifications": packet.content.clarifications + tuple(dict.fromkeys(words))}
        ),
    }


def _after(call: ToolCall, reply: Reply, packet: CognitionPacket, catalogue: Catalogue | None) -> ToolCall:
    update: dict[str, Any] = {"status": _STATUS[reply.outcome]}
    if reply.outcome in _WHY:
        update["review_reasoning"] = _WHY[reply.outcome]
    if reply.outcome is ApprovalOutcome.EDITED and catalogue is not None:
        name, params = reply.tool_name or call.tool_name, reply.params or {}
        problems = check_call(name, params, packet.context.palette_names, catalogue)
        if problems:
            raise RequestError("the edited call is not valid: " + " ".join(problem.message for problem in problems))
        changed = {key for key, value in params.items() if call.params.get(key) != value}
        origins = {key: USER if key in changed else call.provenance.get(key, USER) for key in params}
        update |= {"tool_name": name, "params": params, "risk": catalogue[name].risk, "provenance": origins}
    return call.model_copy(update=update)
