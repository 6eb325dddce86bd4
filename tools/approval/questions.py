"""Asking the user: what a question looks like to a front end, and what their reply means.

The payload is the one that LangChain's human-in-the-loop middleware sends, so that chat front ends show it; each
request carries its arguments as `args` and as `arguments`, because they differ in which they read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from state.base import ConfidenceSource
from state.errors import RequestError
from state.routing import ToolCall
from state.sections import ApprovalOutcome
from tools.checks.provenance import untrusted_params

CLARIFY = "ask_user"

YES = frozenset("y yes ok okay approve approved accept allow go sure".split())
NO = frozenset("n no deny denied reject rejected decline refuse".split())
SKIP = frozenset("s skip ignore".split())

_OUTCOMES = {
    "approve": ApprovalOutcome.APPROVED,
    "accept": ApprovalOutcome.APPROVED,
    "edit": ApprovalOutcome.EDITED,
    "reject": ApprovalOutcome.DENIED,
    "ignore": ApprovalOutcome.SKIPPED,
    "skip": ApprovalOutcome.SKIPPED,
    "respond": ApprovalOutcome.ANSWERED,
    "response": ApprovalOutcome.ANSWERED,
}


@dataclass(frozen=True)
class Reply:
    """The user's word on one call."""

    outcome: ApprovalOutcome
    comment: str = ""
    tool_name: str | None = None
    """For an edit: the tool, when it was named."""
    params: dict[str, Any] | None = None
    """For an edit: the new arguments."""


def approval_payload(
    calls: Sequence[ToolCall], previews: Sequence[str], expires_at: datetime | None, problem: str = ""
) -> dict[str, Any]:
    """Return the question about `calls`, in their order, each with its preview: a unified diff, or nothing."""
    return {
        "kind": "approval",
        "action_requests": [
            _request(call.tool_name, call.params, _about(call), preview)
            for call, preview in zip(calls, previews, strict=True)
        ],
        "review_configs": [_config(call.tool_name, "approve", "edit", "reject", "respond") for call in calls],
        **_frame(expires_at, problem),
    }


def question_payload(question: str, expires_at: datetime | None, problem: str = "") -> dict[str, Any]:
    """Return a question that wants words for an answer."""
    return {
        "kind": "question",
        "question": question,
        "action_requests": [_request(CLARIFY, {"question": question}, question)],
        "review_configs": [_config(CLARIFY, "respond", "reject")],
        **_frame(expires_at, problem),
    }


def parse_replies(reply: Any, count: int) -> list[Reply]:
    """Read a reply to `count` requests: `{"decisions": [...]}`, a list, one decision, or a plain string.

    One decision stands for all requests, unless it is an edit.

    Raises:
        RequestError: it is none of these, or does not decide every request.
    """
    if isinstance(reply, str):
        return [_from_words(reply)] * count
    decisions = reply.get("decisions", [reply]) if isinstance(reply, dict) else reply
    if not isinstance(decisions, list) or not decisions:
        raise RequestError('not a reply: send {"decisions": [{"type": "approve"}]}, or a word such as yes or no')
    replies = [_from_words(one) if isinstance(one, str) else _from_decision(one) for one in decisions]
    if len(replies) == 1 and count > 1 and replies[0].outcome is ApprovalOutcome.EDITED:
        raise RequestError(f"one edit for {count} calls: send a decision for each, in their order")
    if len(replies) == 1:
        return replies * count
    if len(replies) != count:
        raise RequestError(
            f"{len(replies)} decisions for {count} calls: send one for each, in their order, or one for all"
        )
    return replies


def parse_answer(reply: Any) -> str | None:
    """Read the answer to a question; None when the user would not answer.

    Raises:
        RequestError: it is not an answer.
    """
    if isinstance(reply, str):
        return reply.strip() or None
    decision = parse_replies(reply, 1)[0]
    if decision.outcome in {ApprovalOutcome.ANSWERED, ApprovalOutcome.DENIED} and decision.comment.strip():
        return decision.comment.strip()  # agent-chat-ui knows no `respond`: words come as the reason of a rejection
    if decision.outcome in {ApprovalOutcome.DENIED, ApprovalOutcome.SKIPPED}:
        return None
    raise RequestError('the question wants words for an answer: send them as text, or as {"type": "respond"}')


def _from_words(text: str) -> Reply:
    word = text.strip().lower().rstrip(".!")
    if not word:
        return Reply(ApprovalOutcome.SKIPPED)
    for words, outcome in (
        (YES, ApprovalOutcome.APPROVED),
        (NO, ApprovalOutcome.DENIED),
        (SKIP, ApprovalOutcome.SKIPPED),
    ):
        if word in words:
            return Reply(outcome)
    return Reply(ApprovalOutcome.ANSWERED, comment=text.strip())


def _from_decision(decision: Any) -> Reply:
    kind = decision.get("type") if isinstance(decision, dict) else None
    if not isinstance(kind, str) or kind not in _OUTCOMES:
        raise RequestError(f"unknown decision {kind!r}: use approve, edit, reject, respond or skip")
    outcome = _OUTCOMES[kind]
    if outcome is ApprovalOutcome.EDITED:
        return _edit(decision)
    said = decision.get("message", decision.get("args"))
    comment = said if isinstance(said, str) else ""
    if outcome is ApprovalOutcome.ANSWERED and not comment.strip():
        raise RequestError('a "respond" decision needs a "message"')
    return Reply(outcome, comment=comment)


def _edit(decision: dict[str, Any]) -> Reply:
    """Read an edit: the middleware's `edited_action: {name, args}`, Agent Inbox's `args: {action, args}`, or `args`."""
    edited = decision.get("edited_action", decision.get("args"))
    if isinstance(edited, dict):
        name, params = edited.get("name", edited.get("action")), edited.get("args", edited.get("arguments"))
        if isinstance(params, dict) and (name is None or isinstance(name, str)):
            return Reply(ApprovalOutcome.EDITED, tool_name=name, params=params)
        if params is None and "edited_action" not in decision:
            return Reply(ApprovalOutcome.EDITED, params=edited)
    raise RequestError('an "edit" decision needs {"edited_action": {"name": "...", "args": {...}}}')


def _request(name: str, args: dict[str, Any], description: str, preview: str = "") -> dict[str, Any]:
    return {"name": name, "args": args, "arguments": args, "description": description, "preview": preview}


def _config(name: str, *decisions: str) -> dict[str, Any]:
    return {"action_name": name, "allowed_decisions": list(decisions)}


def _frame(expires_at: datetime | None, problem: str) -> dict[str, Any]:
    frame: dict[str, Any] = {"expires_at": expires_at.isoformat() if expires_at else None}
    return {**frame, "problem": problem} if problem else frame


def _about(call: ToolCall) -> str:
    foreign = untrusted_params(call.provenance)
    number = "score" if call.review_confidence_source is ConfidenceSource.RULE else "confidence"
    lines = [f"{call.tool_name} ({call.risk}), review {number} {call.review_confidence:.2f}"]
    lines += [f"review: {call.review_reasoning}"] if call.review_reasoning else []
    lines += [f"`{name}` does not come from you but from {_origin(origin)}" for name, origin in foreign.items()]
    return "\n".join(lines)


def _origin(origin: str) -> str:
    return f"the output of {origin.removeprefix('tool:')}" if origin.startswith("tool:") else "the model"
