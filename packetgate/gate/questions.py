"""The payload of a question for front ends.

The payload is that of LangChain's human-in-the-loop middleware. Front ends differ in whether they read `args` or
`arguments`, so each request has both.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from packetgate.gate.replies import ANSWER
from packetgate.state.base import ConfidenceSource
from packetgate.state.origins import ArgumentRole
from packetgate.state.printing import code_span, escaped, fenced
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import AskedCall, OpenQuestion
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.risk.call import UNCONFIRMED_READ
from packetgate.tools.risk.tool import confirm_read_hint
from packetgate.tools.text.roles import secret_reference_in

CLARIFY = "A question for you"


def text_payload(text: str, question: OpenQuestion, problem: str = "") -> dict[str, Any]:
    """Return the payload of a question that a text answers."""
    problem = problem or question.problem
    return {
        "kind": "question",
        "question": text,
        "action_requests": [_request(CLARIFY, {ANSWER: ""}, text, problem)],
        "review_configs": [{"action_name": CLARIFY, "allowed_decisions": ["respond", "edit", "reject"]}],
        **_common(question, problem),
    }


def approval_payload(calls: Iterable[ToolCall], question: OpenQuestion, problem: str = "") -> dict[str, Any]:
    """Return the payload of a question about calls.

    Some front ends show only `description`, so it repeats problem, warnings, summary and preview.
    """
    problem = problem or question.problem
    asked, waiting = {call.call_id: call for call in question.calls}, [*calls]
    return {
        "kind": "approval",
        "action_requests": [_approval_request(call, asked.get(call.call_id), problem) for call in waiting],
        "review_configs": [
            {
                "action_name": call.tool_name,
                # an edited call cannot replace a call that may have run
                "allowed_decisions": ["approve", *([] if call.started_at else ["edit"]), "reject", "respond"],
            }
            for call in waiting
        ],
        **_common(question, problem),
    }


def preview_of(call: ToolCall, dry_run: ToolCall | None) -> str:
    """Return the output of a call's dry run; empty if there is none, it is cut off, or the call names a secret."""
    result = dry_run.result if dry_run else None
    if result is None or not result.dry_run or result.truncated or secret_reference_in(call.params):
        return ""
    return escaped(result.output)


def _common(question: OpenQuestion, problem: str) -> dict[str, Any]:
    common = {"question_id": question.question_id, "expires_at": question.expires_at.isoformat()}
    return {**common, "problem": problem} if problem else common


def _approval_request(call: ToolCall, asked: AskedCall | None, problem: str) -> dict[str, Any]:
    remember, preview = (asked.remember, asked.preview) if asked else ({}, "")
    offered = "\n".join(f"`{word}` remembers: {line}" for word, line in remember.items())
    about = "\n\n".join(filter(None, (_call_summary(call, may_trust="trust" in remember), offered)))
    warnings = [
        {"argument": name, **origin.model_dump(mode="json", include={"why", "tool", "passage", "flagged_part"})}
        for name, origin in call.provenance.items()
        if origin.is_flagged
    ]
    request = _request(call.tool_name, call.params, about, problem, preview=preview, warnings=warnings)
    return {**request, "remember": remember, "is_small": _is_small(call) and not (warnings or remember)}


def _is_small(call: ToolCall) -> bool:
    """Whether only the confidence of a read is in doubt, and the read does not reach outside."""
    waits_for_confidence = call.status is ToolExecutionStatus.AWAITING_CONFIDENCE and call.started_at is None
    return waits_for_confidence and call.apparent_risk is call.risk is Risk.READ and not call.open_world


def _request(
    name: str,
    args: dict[str, Any],
    about: str,
    problem: str,
    *,
    preview: str = "",
    warnings: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    parts = (problem, *map(_warning_markdown, warnings), about, preview and fenced(preview, "diff"))
    description = "\n\n".join(filter(None, parts))
    shown = {"description": description, "about": about, "preview": preview, "warnings": [*warnings]}
    return {"name": name, "args": args, "arguments": args, **shown}


def _warning_markdown(warning: dict[str, str]) -> str:
    argument = f"{code_span(warning['argument'])}: " if warning["argument"] else ""
    flagged_part = warning["flagged_part"]
    passage = warning["passage"] or flagged_part
    before, _, after = passage.partition(flagged_part) if flagged_part else (passage, "", "")
    spans = [code_span(part) if part.strip() else "" for part in (before, flagged_part, after)]
    quoted = " ".join(filter(None, (spans[0], spans[1] and f"**{spans[1]}**", spans[2])))
    return f"**Warning.** {argument}{warning['why']}" + (f"\n\n> {quoted}" if quoted else "")


def _call_summary(call: ToolCall, *, may_trust: bool) -> str:
    review = ""
    if call.review_confidence_source is not ConfidenceSource.UNJUDGED:
        number = "score" if call.review_confidence_source is ConfidenceSource.RULE else "confidence"
        review = f", review {number} {call.review_confidence:.2f}"
    lines = [
        f"{call.tool_name} ({call.risk}){review}",
        f"it may {call.risk}: {'; '.join(call.risk_reasons)}" if call.risk_reasons else "",
        f"{call.tool_name} {UNCONFIRMED_READ}. Trust it as a read?" if may_trust else confirm_read_hint(call),
        "it reaches outside" if call.open_world else "",
        f"review: {call.review_reasoning}" if call.review_reasoning else "",
        *(
            f"`{name}` comes from {origin.source}"
            for name, origin in call.unstated_origins.items()
            if origin.role is ArgumentRole.DESTINATION and not origin.is_flagged
        ),
        f"{call.unfinished_run_text}: run it again?" if call.started_at else "",
    ]
    return "\n".join(filter(None, lines))
