"""What the user's word does to the packet."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from packetgate.state.errors import RequestError
from packetgate.state.origins import USER
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Approval, ApprovalOutcome, Question
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.questions import parse_answer, parse_replies
from packetgate.tools.approval.remembering import grants_of
from packetgate.tools.approval.verdicts import Reply, decided_in, read_words
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.coercion import coerced
from packetgate.tools.checks.validation import check_call
from packetgate.tools.execution.grants import Grant, Grants
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.permission import call_digest
from packetgate.tools.risk.call import rated
from packetgate.tools.spec.tool_spec import ToolSpec

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


def apply_reply(packet: CognitionPacket, reply: Any, catalogue: Catalogue) -> PacketUpdate:
    """Return what a reply to the pending question changes.

    Raises:
        RequestError: the reply cannot be read, or an edited call is not valid.
    """
    if packet.routing.outcome == "clarify":
        return _answered(packet, parse_answer(reply))
    waiting = [call for call in packet.routing.calls if call.status.awaits_user]
    replies = _in_words(reply, packet, waiting) if isinstance(reply, str) else parse_replies(reply, len(waiting))
    by_id = dict(zip((call.call_id for call in waiting), replies, strict=True))
    return _decided(packet, by_id, catalogue)


def _in_words(reply: str, packet: CognitionPacket, waiting: list[ToolCall]) -> list[Reply]:
    """Return the word on each call; a refusal for good is one for now where no more is offered."""
    asked = packet.governance.question.calls if packet.governance.question else ()
    offered = {one.call_id: one.remember for one in asked}
    read = decided_in(reply, [(call.tool_name, call.params) for call in waiting]) or [read_words(reply)] * len(waiting)
    return [
        replace(one, remember="") if one.refuses and "never" not in offered.get(call.call_id, {}) else one
        for one, call in zip(read, waiting, strict=True)
    ]


def changed_since(
    question: Question, packet: CognitionPacket, decided: PacketUpdate, catalogue: Catalogue
) -> list[ToolCall]:
    """Return the approved calls that are not what the user was asked about: arguments, definition or server."""
    routing = decided.get("tool_routing") or packet.routing
    approved = {call.call_id for call in routing.calls if call.status is ToolExecutionStatus.APPROVED}
    asked = {one.call_id: one.digest for one in question.calls}
    return [
        call
        for call in packet.routing.calls
        if call.status.awaits_user and call.call_id in approved and call.tool_name in catalogue
        if asked.get(call.call_id) != call_digest(call, catalogue[call.tool_name])
    ]


def reopened(packet: CognitionPacket, catalogue: Catalogue) -> PacketUpdate:
    """Return what it changes that the calls asked about must be judged anew."""
    calls = (
        rated(call.reopened(), catalogue.get(call.tool_name)) if call.status.awaits_user else call
        for call in packet.routing.calls
    )
    return {"tool_routing": packet.routing.with_calls(tuple(calls))}


def expired(packet: CognitionPacket) -> PacketUpdate:
    """Return what it changes that the question lapsed: nothing that waited may run."""
    if packet.routing.outcome == "clarify":
        return _unanswered(packet, "the question lapsed before it was answered")
    lapsed = Reply(ApprovalOutcome.EXPIRED)
    return _decided(packet, {call.call_id: lapsed for call in packet.routing.calls if call.status.awaits_user}, None)


def _answered(packet: CognitionPacket, answer: str | None) -> PacketUpdate:
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
    question = packet.governance.question
    approvals = [
        Approval(
            call_id=call.call_id,
            tool_name=call.tool_name,
            params=call.params,
            outcome=replies[call.call_id].outcome,
            comment=replies[call.call_id].comment,
            remember=replies[call.call_id].remember,
            question_id=question.question_id if question else "",
            digest=call_digest(call, catalogue[call.tool_name]) if catalogue and call.tool_name in catalogue else "",
            expires_at=question.expires_at if question else None,
        )
        for call in calls
        if call.call_id in replies
    ]
    words = [one.comment for one in approvals if one.says_instead]
    routing = packet.routing.with_calls(calls)
    goes_on = {ToolExecutionStatus.APPROVED, ToolExecutionStatus.EXECUTED, ToolExecutionStatus.UNKNOWN}
    runs = any(call.status in goes_on for call in calls)
    return {
        "tool_routing": routing if runs or not words else routing.answered(),
        "governance": packet.governance.decided(*approvals),
        "content": packet.content.clarified(*dict.fromkeys(words)),
    }


def _typed(params: dict[str, Any], spec: ToolSpec | None) -> dict[str, Any]:
    """Return edited arguments with texts read as the types that the tool takes: forms of front ends return texts."""
    read = coerced(spec, params) if spec else params
    return {name: read[name] if isinstance(value, str) else value for name, value in params.items()}


def _after(call: ToolCall, reply: Reply, packet: CognitionPacket, catalogue: Catalogue | None) -> ToolCall:
    if reply.outcome is ApprovalOutcome.EDITED and call.started_at is not None:
        raise RequestError(f"{call.tool_name} cannot be edited: {call.doubt}; approve it to run it again, or reject it")
    if reply.outcome is ApprovalOutcome.EDITED and catalogue is not None:
        name = reply.tool_name or call.tool_name
        params = _typed(reply.params or {}, catalogue.get(name))
        problems = check_call(name, params, packet.context.palette_names, catalogue)
        if problems:
            raise RequestError("the edited call is not valid: " + " ".join(problem.message for problem in problems))
        changed = {key for key, value in params.items() if call.params.get(key) != value}
        origins = {key: USER if key in changed else call.provenance.get(key, USER) for key in params}
        return rated(call.edited(name, params, origins), catalogue[name])
    skipped = reply.comment if reply.outcome is ApprovalOutcome.SKIPPED else ""
    return call.decided(_STATUS[reply.outcome], skipped or _WHY.get(reply.outcome, ""))


CHANGED = "the tool, its server or the call is not what it was when you were asked"
NAMING_DIGITS = 8
"""So many digits of its id name a question."""
TAKEN = "an answer to this was taken already, and an answer counts once"


@dataclass(frozen=True)
class Decision:
    """What a reply to a question would change."""

    update: PacketUpdate
    grants: list[Grant]
    """What is to be remembered of it."""
    changed: tuple[str, ...]
    """The approved tools that are not what the user was asked about."""


async def decision_of(reply: Any, question: Question, packet: CognitionPacket, catalogue: Catalogue) -> Decision:
    """Return what a reply would change.

    Raises:
        RequestError: the reply names another question or call, cannot be read, an edited call is not valid, or the
            question did not offer that.
    """
    check_names(reply, question, packet)
    update = await asyncio.to_thread(apply_reply, packet, reply, catalogue)
    grants = grants_of(update, question, packet, catalogue)
    changed = {call.tool_name for call in changed_since(question, packet, update, catalogue)}
    return Decision(update, grants, tuple(sorted(changed)))


def check_names(reply: Any, question: Question, packet: CognitionPacket) -> None:
    """Raise RequestError if a reply names another question, or approves another call."""
    decisions = reply.get("decisions") if isinstance(reply, dict) else reply
    decisions = [one for one in decisions if isinstance(one, dict)] if isinstance(decisions, list) else []
    for one in (reply, *decisions):
        named = one.get("question_id") if isinstance(one, dict) else None
        is_this = len(str(named)) >= NAMING_DIGITS and question.question_id.startswith(str(named))
        if named is not None and not is_this:
            raise RequestError(
                f"this replies to question {named}, and question {question.question_id} waits: reply to it"
            )
    waiting = [call for call in packet.routing.calls if call.status.awaits_user]
    for one, call in zip(decisions, waiting, strict=False):
        shown = one.get("args") if one.get("type") in ("accept", "approve") else None
        if isinstance(shown, dict) and (shown.get("action"), shown.get("args")) != (call.tool_name, call.params):
            raise RequestError(f"this approves another call than the one that waits, which is {call.tool_name}")


async def taken(decision: Decision, question: Question, packet: CognitionPacket, journal: Journal) -> bool:
    """Return whether this is the one answer that counts; then what is to be remembered of it is."""
    if not await journal.claim(question.question_id):
        return False
    for grant in decision.grants:
        await Grants(journal).give(grant, packet)
    return True
