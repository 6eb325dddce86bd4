"""Apply a user's reply to the packet that asked the question."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from packetgate.state.codes import Code
from packetgate.state.errors import RequestError
from packetgate.state.origins import USER
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Approval, ApprovalOutcome, OpenQuestion
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.remembering import grants_of
from packetgate.tools.approval.replies import CallReply, decisions_in, parse_answer, parse_replies, read_words
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_call, coerce_params
from packetgate.tools.execution.grants import Grant, Grants
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.permission import call_digest
from packetgate.tools.risk.call import with_risk

CHANGED = "the tool, its server or the call changed after you were asked"
TAKEN = "this question was already answered"
NAMING_DIGITS = 8
"""Least number of leading digits of a question's id that identify the question in a reply."""

_STATUS = {
    ApprovalOutcome.APPROVED: ToolExecutionStatus.APPROVED,
    ApprovalOutcome.EDITED: ToolExecutionStatus.APPROVED,
    ApprovalOutcome.DENIED: ToolExecutionStatus.USER_DENIED,
    ApprovalOutcome.ANSWERED: ToolExecutionStatus.SKIPPED,
    ApprovalOutcome.SKIPPED: ToolExecutionStatus.SKIPPED,
    ApprovalOutcome.EXPIRED: ToolExecutionStatus.SKIPPED,
}
_EXPIRED = "the question expired before it was answered"
_WHY = {
    ApprovalOutcome.ANSWERED: "you sent another message instead",
    ApprovalOutcome.SKIPPED: "you skipped it",
    ApprovalOutcome.EXPIRED: _EXPIRED,
}


@dataclass(frozen=True)
class ReplyEffects:
    """The effects of a reply that are not applied yet."""

    update: PacketUpdate
    grants: list[Grant]
    changed: tuple[str, ...]


async def decision_of(
    reply: Any, question: OpenQuestion, packet: CognitionPacket, catalogue: Catalogue
) -> ReplyEffects:
    """Return the effects of a reply.

    Raises:
        RequestError: the reply is about another question or call, cannot be read, or was not offered, or an edited
            call is not valid.
    """
    check_names(reply, question, packet)
    update = await asyncio.to_thread(_update, packet, reply, catalogue)
    changed = _changed_tools(question, packet, update, catalogue)
    return ReplyEffects(update, grants_of(update, question, packet, catalogue), changed)


async def claim(decision: ReplyEffects, question: OpenQuestion, packet: CognitionPacket, journal: Journal) -> bool:
    """Claim the question for this decision and store its grants; return False if another answer came first."""
    if not await journal.claim(question.question_id):
        return False
    for grant in decision.grants:
        await Grants(journal).give(grant, packet)
    return True


def check_names(reply: Any, question: OpenQuestion, packet: CognitionPacket) -> None:
    """Raise RequestError if a reply names another question, or approves another call."""
    decisions = reply.get("decisions") if isinstance(reply, dict) else reply
    decisions = [one for one in decisions if isinstance(one, dict)] if isinstance(decisions, list) else []
    for part in (reply, *decisions):
        named = part.get("question_id") if isinstance(part, dict) else None
        is_this = len(str(named)) >= NAMING_DIGITS and question.question_id.startswith(str(named))
        if named is not None and not is_this:
            raise RequestError(
                f"this reply is for question {named}, but question {question.question_id} is open: reply to that one",
                Code.OTHER_QUESTION,
            )
    waiting = [call for call in packet.routing.calls if call.status.awaits_user]
    for part, call in zip(decisions, waiting, strict=False):
        shown = part.get("args") if part.get("type") in ("accept", "approve") else None
        if isinstance(shown, dict) and (shown.get("action"), shown.get("args")) != (call.tool_name, call.params):
            message = f"this approves another call than the waiting one, {call.tool_name}"
            raise RequestError(message, Code.OTHER_CALL)


def review_again(packet: CognitionPacket, catalogue: Catalogue) -> PacketUpdate:
    """Return the update after which the waiting calls are reviewed again."""
    calls = (
        with_risk(call.changed(status=ToolExecutionStatus.PENDING), catalogue.get(call.tool_name))
        if call.status.awaits_user
        else call
        for call in packet.routing.calls
    )
    return {"tool_routing": packet.routing.changed(calls=tuple(calls))}


def expire_question(packet: CognitionPacket) -> PacketUpdate:
    """Return the update for a question that expired: no waiting call may run."""
    if packet.routing.outcome == "clarify":
        return {"tool_routing": packet.routing.ended_without_call(_EXPIRED)}
    reply = CallReply(ApprovalOutcome.EXPIRED)
    return _decided(packet, {call.call_id: reply for call in packet.routing.calls if call.status.awaits_user}, None)


def _update(packet: CognitionPacket, reply: Any, catalogue: Catalogue) -> PacketUpdate:
    if packet.routing.outcome == "clarify":
        answer = parse_answer(reply)
        if answer is None:
            return {"tool_routing": packet.routing.ended_without_call("you did not answer the question")}
        return {"tool_routing": packet.routing.after_answer(), "content": packet.content.with_answers(answer)}
    waiting = [call for call in packet.routing.calls if call.status.awaits_user]
    replies = _in_words(reply, packet, waiting) if isinstance(reply, str) else parse_replies(reply, len(waiting))
    by_id = dict(zip((call.call_id for call in waiting), replies, strict=True))
    return _decided(packet, by_id, catalogue)


def _in_words(text: str, packet: CognitionPacket, waiting: list[ToolCall]) -> list[CallReply]:
    asked = packet.governance.question.calls if packet.governance.question else ()
    offered = {one.call_id: one.remember for one in asked}
    replies = decisions_in(text, [(call.tool_name, call.params) for call in waiting]) or [read_words(text)] * len(
        waiting
    )
    return [  # "never" only denies this call if it was not offered
        replace(reply, remember="")
        if reply.outcome is ApprovalOutcome.DENIED and "never" not in offered.get(call.call_id, {})
        else reply
        for reply, call in zip(replies, waiting, strict=True)
    ]


def _changed_tools(
    question: OpenQuestion, packet: CognitionPacket, update: PacketUpdate, catalogue: Catalogue
) -> tuple[str, ...]:
    routing = update.get("tool_routing") or packet.routing
    approved = {call.call_id for call in routing.calls if call.status is ToolExecutionStatus.APPROVED}
    digests = {one.call_id: one.digest for one in question.calls}
    changed = {
        call.tool_name
        for call in packet.routing.calls
        if call.status.awaits_user and call.call_id in approved and call.tool_name in catalogue
        if digests.get(call.call_id) != call_digest(call, catalogue[call.tool_name])
    }
    return tuple(sorted(changed))


def _decided(packet: CognitionPacket, replies: dict[str, CallReply], catalogue: Catalogue | None) -> PacketUpdate:
    calls = tuple(
        _after(call, replies[call.call_id], packet, catalogue) if call.call_id in replies else call
        for call in packet.routing.calls
    )
    question = packet.governance.question
    approvals = [
        Approval(
            call_id=call.call_id,
            tool_name=call.tool_name,
            params=call.params,
            outcome=reply.outcome,
            comment=reply.comment,
            remember=reply.remember,
            question_id=question.question_id if question else "",
            digest=call_digest(call, catalogue[call.tool_name]) if catalogue and call.tool_name in catalogue else "",
            expires_at=question.expires_at if question else None,
        )
        for call in calls
        if (reply := replies.get(call.call_id))
    ]
    comments = [approval.comment for approval in approvals if approval.goes_to_selection]
    routing = packet.routing.changed(calls=calls)
    ran_or_runs = {ToolExecutionStatus.APPROVED, ToolExecutionStatus.EXECUTED, ToolExecutionStatus.UNKNOWN}
    goes_on = any(call.status in ran_or_runs for call in calls)
    return {
        "tool_routing": routing if goes_on or not comments else routing.after_answer(),
        "governance": packet.governance.with_approvals(*approvals),
        "content": packet.content.with_answers(*dict.fromkeys(comments)),
    }


def _after(call: ToolCall, reply: CallReply, packet: CognitionPacket, catalogue: Catalogue | None) -> ToolCall:
    if reply.outcome is ApprovalOutcome.EDITED and catalogue is not None:
        return _edited(call, reply, packet, catalogue)
    comment = reply.comment if reply.outcome is ApprovalOutcome.SKIPPED else ""
    return call.with_decision(_STATUS[reply.outcome], comment or _WHY.get(reply.outcome, ""))


def _edited(call: ToolCall, reply: CallReply, packet: CognitionPacket, catalogue: Catalogue) -> ToolCall:
    if call.started_at is not None:
        message = (
            f"{call.tool_name} cannot be edited: {call.unfinished_run_text}; approve it to run it again, or reject it"
        )
        raise RequestError(message, Code.EDIT_REFUSED)
    name = reply.tool_name or call.tool_name
    params = _typed(reply.params or {}, name, catalogue)
    problems = check_call(name, params, packet.context.palette_names, catalogue)
    if problems:
        message = "the edited call is not valid: " + " ".join(problem.message for problem in problems)
        raise RequestError(message, Code.EDIT_INVALID)
    unchanged = {key for key, value in params.items() if call.params.get(key) == value}
    origins = {key: call.provenance.get(key, USER) if key in unchanged else USER for key in params}
    edited = call.changed(status=ToolExecutionStatus.APPROVED, tool_name=name, params=params, provenance=origins)
    return with_risk(edited, catalogue[name])


def _typed(params: dict[str, Any], name: str, catalogue: Catalogue) -> dict[str, Any]:
    """Return the arguments with edited texts converted to the schema's types, because front-end forms return text."""
    spec = catalogue.get(name)
    typed = coerce_params(spec, params) if spec else params
    return {key: typed[key] if isinstance(value, str) else value for key, value in params.items()}
