"""Apply a user's reply to the calls of a question."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from packetgate.gate.checks import call_digest
from packetgate.gate.facts import Facts
from packetgate.gate.grants import Grant
from packetgate.gate.proposal import Proposal
from packetgate.gate.remembering import grants_of
from packetgate.gate.replies import CallReply, parse_replies, parse_words, read_reply
from packetgate.state.codes import Code
from packetgate.state.errors import CallRefusedError, RequestError
from packetgate.state.origins import USER
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Approval, ApprovalOutcome, OpenQuestion
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.checks.validation import check_call, coerce_params
from packetgate.tools.risk.call import with_risk

CALL_CHANGED = "the tool, its server or the call changed after you were asked"
ALREADY_ANSWERED = "this question was already answered"
EXPIRED = "the question expired before it was answered"
NAME_THE_QUESTION = (
    "this is not the first question of the turn, so the reply must name it:"
    ' {"question_id": "...", "decisions": [{"type": "approve"}]}'
)
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
_OUTCOME_REASONS = {
    ApprovalOutcome.ANSWERED: "you sent another message instead",
    ApprovalOutcome.SKIPPED: "you skipped it",
    ApprovalOutcome.EXPIRED: EXPIRED,
}


def decide(proposal: Proposal, question: OpenQuestion, reply: Any) -> tuple[Proposal, list[Grant]]:
    """Return the calls with the decisions of a reply, and the grants to store. Blocking.

    Raises:
        RequestError: the reply names another question or call, is not a valid reply, uses a word that was not offered,
            or contains an edited call that is not valid.
        CallRefusedError: an approved tool, its server or the call has changed since the question.
    """
    check_reply_target(reply, question, proposal.waiting)
    waiting, in_words = proposal.waiting, isinstance(reply, str)
    replies = _replies_in_words(reply, question, waiting) if in_words else parse_replies(reply, len(waiting))
    decided = _with_decisions(
        proposal, question, {call.call_id: one for call, one in zip(waiting, replies, strict=True)}
    )
    new = decided.approvals[len(proposal.approvals) :]
    grants = grants_of(new, proposal.calls, question, proposal.facts)
    catalogue, approved = proposal.facts.catalogue, {call.call_id for call in decided.approved}
    digests = {asked.call_id: asked.digest for asked in question.calls}
    changed = {
        call.tool_name
        for call in waiting
        if call.call_id in approved and call.tool_name in catalogue
        if digests.get(call.call_id) != call_digest(call, catalogue[call.tool_name])
    }
    if changed:
        raise CallRefusedError(f"{', '.join(sorted(changed))}: {CALL_CHANGED}", code=Code.CALL_CHANGED)
    return decided, grants


def expire(proposal: Proposal, question: OpenQuestion) -> Proposal:
    """Return the proposal after its question has expired: no waiting call may run."""
    reply = CallReply(ApprovalOutcome.EXPIRED)
    return _with_decisions(proposal, question, {call.call_id: reply for call in proposal.waiting})


def for_new_review(proposal: Proposal) -> Proposal:
    """Return the proposal with its waiting calls reset, so that they are reviewed again."""
    return replace(
        proposal.with_calls(
            proposal.facts.current_call(call.changed(status=ToolExecutionStatus.PENDING)) for call in proposal.waiting
        ),
        question=None,
    )


def names_question(reply: Any, question: OpenQuestion) -> bool:
    """Whether a reply, or one of its decisions, names this question by its id."""
    return any(_is_id_of(named, question) for named in _named_questions(reply))


def check_reply_target(reply: Any, question: OpenQuestion, waiting: tuple[ToolCall, ...]) -> None:
    """Raise RequestError if a reply names another question, or approves another call."""
    for named in _named_questions(reply):
        if not _is_id_of(named, question):
            raise RequestError(
                f"this reply names question {named}, but question {question.question_id} is open: name "
                "the open question, or none",
                Code.OTHER_QUESTION,
            )
    for part, call in zip(_decisions(reply), waiting, strict=False):
        approved = part.get("args") if part.get("type") in ("accept", "approve") else None
        if isinstance(approved, dict) and (approved.get("action"), approved.get("args")) != (
            call.tool_name,
            call.params,
        ):
            message = f"the reply approves another call than the waiting call of {call.tool_name}: approve it unchanged"
            raise RequestError(message, Code.OTHER_CALL)


def _decisions(reply: Any) -> list[dict[str, Any]]:
    decisions = reply.get("decisions") if isinstance(reply, dict) else reply
    return [one for one in decisions if isinstance(one, dict)] if isinstance(decisions, list) else []


def _named_questions(reply: Any) -> list[Any]:
    parts = [reply, *_decisions(reply)]
    return [part["question_id"] for part in parts if isinstance(part, dict) and part.get("question_id") is not None]


def _is_id_of(named: Any, question: OpenQuestion) -> bool:
    return len(str(named)) >= MIN_ID_DIGITS and question.question_id.startswith(str(named))


def _replies_in_words(text: str, question: OpenQuestion, waiting: tuple[ToolCall, ...]) -> list[CallReply]:
    offered = {call.call_id: call.remember for call in question.calls}
    named = read_reply(text, [(call.tool_name, call.params) for call in waiting])
    return [  # if it was not offered, "never" denies only this call
        replace(reply, remember="")
        if reply.outcome is ApprovalOutcome.DENIED and "never" not in offered.get(call.call_id, {})
        else reply
        for reply, call in zip(named or [parse_words(text)] * len(waiting), waiting, strict=True)
    ]


def _with_decisions(proposal: Proposal, question: OpenQuestion, replies: Mapping[str, CallReply]) -> Proposal:
    catalogue = proposal.facts.catalogue
    calls = [
        _call_after_reply(call, replies[call.call_id], proposal.facts)
        for call in proposal.calls
        if call.call_id in replies
    ]
    approvals = [
        Approval(
            call_id=call.call_id,
            tool_name=call.tool_name,
            params=call.params,
            outcome=reply.outcome,
            comment=reply.comment,
            remember=reply.remember,
            question_id=question.question_id,
            digest=call_digest(call, catalogue[call.tool_name]) if call.tool_name in catalogue else "",
            expires_at=question.expires_at,
        )
        for call in calls
        if (reply := replies[call.call_id])
    ]
    return replace(proposal.with_calls(calls).with_approvals(*approvals), question=None)


def _call_after_reply(call: ToolCall, reply: CallReply, facts: Facts) -> ToolCall:
    if reply.outcome is ApprovalOutcome.EDITED:
        return _edited_call(call, reply, facts)
    comment = reply.comment if reply.outcome is ApprovalOutcome.SKIPPED else ""
    return call.with_decision(_STATUS[reply.outcome], comment or _OUTCOME_REASONS.get(reply.outcome, ""))


def _edited_call(call: ToolCall, reply: CallReply, facts: Facts) -> ToolCall:
    if call.started_at is not None:
        message = (
            f"{call.tool_name} cannot be edited: {call.unfinished_run_text}; "
            "approve the call to run it again, or reject it"
        )
        raise RequestError(message, Code.EDIT_REFUSED)
    name = reply.tool_name or call.tool_name
    params, spec = dict(reply.params or {}), facts.catalogue.get(name)
    typed = coerce_params(spec, params) if spec else params  # forms of front ends return text
    params = {key: typed[key] if isinstance(value, str) else value for key, value in params.items()}
    problems = check_call(name, params, facts.offered, facts.catalogue)
    if problems:
        message = "the edited call is not valid: " + " ".join(problem.message for problem in problems)
        raise RequestError(message, Code.EDIT_INVALID)
    unchanged = {key for key, value in params.items() if call.params.get(key) == value}
    origins = {key: call.provenance.get(key, USER) if key in unchanged else USER for key in params}
    spec = facts.catalogue[name]
    changed = {"tool_name": name, "params": params, "provenance": origins, "traced_for": spec.digest}
    return with_risk(call.changed(status=ToolExecutionStatus.APPROVED, **changed), spec)
