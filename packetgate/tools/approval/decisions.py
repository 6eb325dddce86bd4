"""Apply a user's reply to the packet with the question."""

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
from packetgate.tools.approval.replies import CallReply, decisions_in, parse_answer, parse_replies, parse_words
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_call, coerce_params
from packetgate.tools.execution.grants import Grant, Grants
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.permission import call_digest
from packetgate.tools.risk.call import with_risk

CALL_CHANGED = "the tool, its server or the call changed after you were asked"
ALREADY_ANSWERED = "this question was already answered"
MIN_ID_DIGITS = 8
"""Minimum number of leading digits by which a reply may name a question."""

_STATUS = {
    ApprovalOutcome.APPROVED: ToolExecutionStatus.APPROVED,
    ApprovalOutcome.EDITED: ToolExecutionStatus.APPROVED,
    ApprovalOutcome.DENIED: ToolExecutionStatus.USER_DENIED,
    ApprovalOutcome.ANSWERED: ToolExecutionStatus.SKIPPED,
    ApprovalOutcome.SKIPPED: ToolExecutionStatus.SKIPPED,
    ApprovalOutcome.EXPIRED: ToolExecutionStatus.SKIPPED,
}
_EXPIRED = "the question expired before it was answered"
_OUTCOME_REASONS = {
    ApprovalOutcome.ANSWERED: "you sent another message instead",
    ApprovalOutcome.SKIPPED: "you skipped it",
    ApprovalOutcome.EXPIRED: _EXPIRED,
}


@dataclass(frozen=True)
class ReplyEffects:
    """The effects of a reply, before they are applied."""

    update: PacketUpdate
    grants: list[Grant]
    changed_tools: tuple[str, ...]
    """Approved tools that changed after the question."""


async def effects_of_reply(
    reply: Any, question: OpenQuestion, packet: CognitionPacket, catalogue: Catalogue
) -> ReplyEffects:
    """Return the effects of a reply.

    Raises:
        RequestError: the reply names another question or call, is not a valid reply, uses a word that was not offered,
            or contains an edited call that is not valid.
    """
    check_reply_target(reply, question, packet)
    update = await asyncio.to_thread(_update_for_reply, packet, reply, catalogue)
    changed = _changed_tools(question, packet, update, catalogue)
    return ReplyEffects(update, grants_of(update, question, packet, catalogue), changed)


async def claim(effects: ReplyEffects, question: OpenQuestion, packet: CognitionPacket, journal: Journal) -> bool:
    """Claim the question for this reply and store its grants; return False if another reply came first."""
    if not await journal.claim(question.question_id):
        return False
    for grant in effects.grants:
        await Grants(journal).give(grant, packet)
    return True


def check_reply_target(reply: Any, question: OpenQuestion, packet: CognitionPacket) -> None:
    """Raise RequestError if a reply names another question, or approves another call."""
    decisions = reply.get("decisions") if isinstance(reply, dict) else reply
    decisions = (
        [decision for decision in decisions if isinstance(decision, dict)] if isinstance(decisions, list) else []
    )
    for part in (reply, *decisions):
        named = part.get("question_id") if isinstance(part, dict) else None
        is_this = len(str(named)) >= MIN_ID_DIGITS and question.question_id.startswith(str(named))
        if named is not None and not is_this:
            raise RequestError(
                f"this reply names question {named}, but question {question.question_id} is open: name "
                "the open question, or none",
                Code.OTHER_QUESTION,
            )
    waiting = [call for call in packet.routing.calls if call.status.awaits_user]
    for part, call in zip(decisions, waiting, strict=False):
        approved = part.get("args") if part.get("type") in ("accept", "approve") else None
        if isinstance(approved, dict) and (approved.get("action"), approved.get("args")) != (
            call.tool_name,
            call.params,
        ):
            message = f"the reply approves another call than the waiting call of {call.tool_name}: approve it unchanged"
            raise RequestError(message, Code.OTHER_CALL)


def update_for_new_review(packet: CognitionPacket, catalogue: Catalogue) -> PacketUpdate:
    """Return the update that sends the waiting calls to the review again."""
    calls = (
        with_risk(call.changed(status=ToolExecutionStatus.PENDING), catalogue.get(call.tool_name))
        if call.status.awaits_user
        else call
        for call in packet.routing.calls
    )
    return {"tool_routing": packet.routing.changed(calls=tuple(calls))}


def expire_question(packet: CognitionPacket) -> PacketUpdate:
    """Return the update for an expired question, after which no waiting call may run."""
    if packet.routing.outcome == "clarify":
        return {"tool_routing": packet.routing.ended_without_call(_EXPIRED)}
    reply = CallReply(ApprovalOutcome.EXPIRED)
    return _update_with_decisions(
        packet, {call.call_id: reply for call in packet.routing.calls if call.status.awaits_user}, None
    )


def _update_for_reply(packet: CognitionPacket, reply: Any, catalogue: Catalogue) -> PacketUpdate:
    if packet.routing.outcome == "clarify":
        answer = parse_answer(reply)
        if answer is None:
            return {"tool_routing": packet.routing.ended_without_call("you did not answer the question")}
        return {"tool_routing": packet.routing.after_answer(), "content": packet.content.with_answers(answer)}
    waiting = [call for call in packet.routing.calls if call.status.awaits_user]
    replies = (
        _replies_in_words(reply, packet, waiting) if isinstance(reply, str) else parse_replies(reply, len(waiting))
    )
    by_id = dict(zip((call.call_id for call in waiting), replies, strict=True))
    return _update_with_decisions(packet, by_id, catalogue)


def _replies_in_words(text: str, packet: CognitionPacket, waiting: list[ToolCall]) -> list[CallReply]:
    question_calls = packet.governance.question.calls if packet.governance.question else ()
    offered = {call.call_id: call.remember for call in question_calls}
    replies = decisions_in(text, [(call.tool_name, call.params) for call in waiting]) or [parse_words(text)] * len(
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
    digests = {asked.call_id: asked.digest for asked in question.calls}
    changed = {
        call.tool_name
        for call in packet.routing.calls
        if call.status.awaits_user and call.call_id in approved and call.tool_name in catalogue
        if digests.get(call.call_id) != call_digest(call, catalogue[call.tool_name])
    }
    return tuple(sorted(changed))


def _update_with_decisions(
    packet: CognitionPacket, replies: dict[str, CallReply], catalogue: Catalogue | None
) -> PacketUpdate:
    calls = tuple(
        _call_after_reply(call, replies[call.call_id], packet, catalogue) if call.call_id in replies else call
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
    may_have_run = any(call.status in ran_or_runs for call in calls)
    return {
        "tool_routing": routing if may_have_run or not comments else routing.after_answer(),
        "governance": packet.governance.with_approvals(*approvals),
        "content": packet.content.with_answers(*dict.fromkeys(comments)),
    }


def _call_after_reply(
    call: ToolCall, reply: CallReply, packet: CognitionPacket, catalogue: Catalogue | None
) -> ToolCall:
    if reply.outcome is ApprovalOutcome.EDITED and catalogue is not None:
        return _edited_call(call, reply, packet, catalogue)
    comment = reply.comment if reply.outcome is ApprovalOutcome.SKIPPED else ""
    return call.with_decision(_STATUS[reply.outcome], comment or _OUTCOME_REASONS.get(reply.outcome, ""))


def _edited_call(call: ToolCall, reply: CallReply, packet: CognitionPacket, catalogue: Catalogue) -> ToolCall:
    if call.started_at is not None:
        message = (
            f"{call.tool_name} cannot be edited: {call.unfinished_run_text}; "
            "approve the call to run it again, or reject it"
        )
        raise RequestError(message, Code.EDIT_REFUSED)
    name = reply.tool_name or call.tool_name
    params = _with_schema_types(reply.params or {}, name, catalogue)
    problems = check_call(name, params, packet.context.palette_names, catalogue)
    if problems:
        message = "the edited call is not valid: " + " ".join(problem.message for problem in problems)
        raise RequestError(message, Code.EDIT_INVALID)
    unchanged = {key for key, value in params.items() if call.params.get(key) == value}
    origins = {key: call.provenance.get(key, USER) if key in unchanged else USER for key in params}
    edited = call.changed(status=ToolExecutionStatus.APPROVED, tool_name=name, params=params, provenance=origins)
    return with_risk(edited, catalogue[name])


def _with_schema_types(params: dict[str, Any], name: str, catalogue: Catalogue) -> dict[str, Any]:
    """Return the arguments with texts converted to the schema's types, because forms of front ends return text."""
    spec = catalogue.get(name)
    typed = coerce_params(spec, params) if spec else params
    return {key: typed[key] if isinstance(value, str) else value for key, value in params.items()}
