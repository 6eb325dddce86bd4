"""What the user's word does to the packet."""

from typing import Any

from state.errors import RequestError
from state.packet import CognitionPacket, PacketUpdate
from state.routing import ToolCall
from state.sections import Approval, ApprovalOutcome, AuditEntry
from state.transitions import ToolExecutionStatus
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
        "tool_routing": packet.routing.answered(),
        "content": packet.content.clarified(answer),
    }


def _unanswered(packet: CognitionPacket, why: str) -> PacketUpdate:
    return {"tool_routing": packet.routing.ended(why)}


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
    routing = packet.routing.with_calls(calls)
    runs = any(call.status is ToolExecutionStatus.APPROVED for call in calls)
    return {
        "tool_routing": routing if runs or not words else routing.answered(),
        "governance": packet.governance.decided(*approvals).audited(*trail),
        "content": packet.content.clarified(*dict.fromkeys(words)),
    }


def _after(call: ToolCall, reply: Reply, packet: CognitionPacket, catalogue: Catalogue | None) -> ToolCall:
    if reply.outcome is ApprovalOutcome.EDITED and catalogue is not None:
        name, params = reply.tool_name or call.tool_name, reply.params or {}
        problems = check_call(name, params, packet.context.palette_names, catalogue)
        if problems:
            raise RequestError("the edited call is not valid: " + " ".join(problem.message for problem in problems))
        changed = {key for key, value in params.items() if call.params.get(key) != value}
        origins = {key: USER if key in changed else call.provenance.get(key, USER) for key in params}
        return call.edited(name, params, catalogue[name].risk, origins)
    return call.decided(_STATUS[reply.outcome], _WHY.get(reply.outcome, ""))
