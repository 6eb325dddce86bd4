"""Asking the user: what a question looks like to a front end, and what their reply means.

The payload is the one that LangChain's human-in-the-loop middleware sends, so that chat front ends show it; each
request carries its arguments as `args` and as `arguments`, because they differ in which they read.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from packetgate.state.base import ConfidenceSource
from packetgate.state.errors import RequestError
from packetgate.state.origins import ArgumentRole, Origin
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import code_span, fenced
from packetgate.state.routing import ToolCall
from packetgate.state.sections import ApprovalOutcome, AskedCall, Question, Remember
from packetgate.tools.approval.verdicts import Reply, decided_in, read_words
from packetgate.tools.risk.vouching import way_to_vouch

_REMEMBERED = frozenset({ApprovalOutcome.APPROVED, ApprovalOutcome.DENIED})

CLARIFY = "A question for you"
"""What front ends show as the title of a question that wants words."""

ANSWER = "answer"
"""The argument that takes the words: agent-chat-ui, which has no `respond`, shows it as a field to edit."""

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


def payload(packet: CognitionPacket, question: Question, problem: str = "") -> dict[str, Any]:
    """Return what is put to the user: calls to decide, in their order, or a question that wants words.

    Chat front ends show a request's `description` alone, so that all else is told there as well.
    """
    problem = problem or question.problem
    frame = {
        "question_id": question.question_id,
        "expires_at": question.expires_at.isoformat(),
        **({"problem": problem} if problem else {}),
    }
    words = packet.routing.question if packet.routing.outcome == "clarify" else None
    if words is not None:
        return {
            "kind": "question",
            "question": words,
            "action_requests": [_request(CLARIFY, {ANSWER: ""}, words, problem)],
            "review_configs": [_config(CLARIFY, "respond", "edit", "reject")],
            **frame,
        }
    asked = {one.call_id: one for one in question.calls}
    calls = [call for call in packet.routing.calls if call.status.awaits_user]
    return {
        "kind": "approval",
        "action_requests": [_approval_request(call, asked.get(call.call_id), problem) for call in calls],
        "review_configs": [_config(call.tool_name, *_allowed(call)) for call in calls],
        **frame,
    }


def words_of(reply: Any, count: int) -> str:
    """Return a reply's words: a text, or those said to the one request that there is; empty where it is no words."""
    if isinstance(reply, str):
        return reply.strip()
    try:
        (one,) = parse_replies(reply, count) if count == 1 else [Reply(ApprovalOutcome.SKIPPED)]
    except RequestError:
        return ""
    said = one.comment if one.outcome is ApprovalOutcome.ANSWERED else (one.params or {}).get(ANSWER)
    return said.strip() if isinstance(said, str) else ""


def decides(text: str, question: Mapping[str, Any]) -> bool:
    """Whether a message says yes, no or skip to all that a question asks."""
    if question.get("kind") == "question" or not text.strip():
        return is_reply(text)
    requests = question.get("action_requests") or ()
    return decided_in(text, [(str(one.get("name")), one.get("args") or {}) for one in requests]) is not None


def is_reply(text: str) -> bool:
    """Whether a message only says yes, no or skip."""
    return bool(text.strip()) and read_words(text).outcome is not ApprovalOutcome.ANSWERED


def parse_replies(reply: Any, count: int) -> list[Reply]:
    """Read a reply to `count` requests: `{"decisions": [...]}`, a list, one decision, or a plain string.

    A decision decides one request. A person's own word, who was shown them all, stands for all.

    Raises:
        RequestError: it is none of these, or does not decide every request.
    """
    if isinstance(reply, str):
        return [read_words(reply)] * count
    decisions = reply.get("decisions", [reply]) if isinstance(reply, dict) else reply
    if not isinstance(decisions, list) or not decisions:
        raise RequestError('not a reply: send {"decisions": [{"type": "approve"}]}, or a word such as yes or no')
    replies = [read_words(one) if isinstance(one, str) else _from_decision(one) for one in decisions]
    if len(replies) != count:
        raise RequestError(f"{len(replies)} decisions for {count} calls: send one for each, in their order")
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
        return decision.comment.strip()  # the reason of a rejection is an answer too
    answer = (decision.params or {}).get(ANSWER)
    if isinstance(answer, str) and answer.strip():
        return answer.strip()
    if decision.outcome in {ApprovalOutcome.DENIED, ApprovalOutcome.SKIPPED}:
        return None
    raise RequestError('the question wants words for an answer: send them as text, or as {"type": "respond"}')


def _from_decision(decision: Any) -> Reply:
    kind = decision.get("type") if isinstance(decision, dict) else None
    if not isinstance(kind, str) or kind not in _OUTCOMES:
        raise RequestError(f"unknown decision {kind!r}: use approve, edit, reject, respond or skip")
    outcome = _OUTCOMES[kind]
    if outcome is ApprovalOutcome.EDITED:
        return _edit(decision)
    remember = decision.get("remember", "")
    if remember not in get_args(Remember) or (remember and outcome not in _REMEMBERED):
        raise RequestError(
            f'{kind} cannot be remembered as {remember!r}: "remember" is session or always, of approve and reject'
        )
    said = decision.get("message", decision.get("args"))
    comment = said if isinstance(said, str) else ""
    if outcome is ApprovalOutcome.ANSWERED and not comment.strip():
        raise RequestError('a "respond" decision needs a "message"')
    return Reply(outcome, comment=comment, remember=remember)


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


def _approval_request(call: ToolCall, asked: AskedCall | None, problem: str) -> dict[str, Any]:
    remember, preview = (asked.remember, asked.preview) if asked else ({}, "")
    offers = "\n".join(f"`{word}` remembers: {line}" for word, line in remember.items())
    about = "\n\n".join(part for part in (_about(call), offers) if part)
    request = _request(call.tool_name, call.params, about, problem, preview=preview, warnings=_warnings(call))
    return {**request, "remember": remember}


def _request(
    name: str,
    args: dict[str, Any],
    about: str,
    problem: str,
    *,
    preview: str = "",
    warnings: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    parts = (problem, *map(_in_markdown, warnings), about, preview and fenced(preview, "diff"))
    description = "\n\n".join(part for part in parts if part)
    shown = {"description": description, "about": about, "preview": preview, "warnings": [*warnings]}
    return {"name": name, "args": args, "arguments": args, **shown}


def _warnings(call: ToolCall) -> list[dict[str, str]]:
    """Return what the user must look at before all else: which argument, why, and the passage that it stands in."""
    return [
        {
            "argument": name,
            "why": origin.why,
            "tool": origin.tool,
            "sentence": origin.sentence,
            "marked": origin.marked,
        }
        for name, origin in call.provenance.items()
        if origin.loud
    ]


def _in_markdown(warning: dict[str, str]) -> str:
    """Return a warning with its passage as code, what is marked in it bold."""
    what = f"{code_span(warning['argument'])}: " if warning["argument"] else ""
    before, marked, after = split_at(warning["sentence"] or warning["marked"], warning["marked"])
    passage = " ".join(part for part in (_code(before), f"**{_code(marked)}**" if marked else "", _code(after)) if part)
    return f"**Look at this.** {what}{warning['why']}" + (f"\n\n> {passage}" if passage else "")


def _code(text: str) -> str:
    return code_span(text) if text.strip() else ""


def split_at(sentence: str, marked: str) -> tuple[str, str, str]:
    """Return a passage in three parts: what stands before the marked part, the part, and the rest."""
    return sentence.partition(marked) if marked else (sentence, "", "")


def _config(name: str, *decisions: str) -> dict[str, Any]:
    return {"action_name": name, "allowed_decisions": list(decisions)}


def _allowed(call: ToolCall) -> list[str]:
    """Return what may be decided: another call cannot stand in for one that may have been run."""
    return ["approve", *([] if call.started_at else ["edit"]), "reject", "respond"]


def _about(call: ToolCall) -> str:
    number = "score" if call.review_confidence_source is ConfidenceSource.RULE else "confidence"
    sure = f", review {number} {call.review_confidence:.2f}"
    judged = call.review_confidence_source is not ConfidenceSource.UNJUDGED
    lines = [f"{call.tool_name} ({call.risk}){sure if judged else ''}"]
    lines += [f"it may {call.risk}: {'; '.join(call.risk_why)}"] if call.risk_why else []
    lines += [way_to_vouch(call)] if way_to_vouch(call) else []
    lines += ["it reaches outside"] if call.open_world else []
    lines += [f"review: {call.review_reasoning}"] if call.review_reasoning else []
    lines += [f"`{name}` comes from {one.source}" for name, one in call.foreign.items() if _is_worth_saying(one)]
    lines += [f"{call.doubt}: run it again?"] if call.started_at else []
    return "\n".join(lines)


def _is_worth_saying(origin: Origin) -> bool:
    """Whether an origin is told that is no warning: where a call goes, unless the user said it."""
    return origin.role is ArgumentRole.DESTINATION and not origin.loud
