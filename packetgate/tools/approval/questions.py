"""Build a packet's question to the user, its payload for front ends, and its parking during another turn.

The payload is that of LangChain's human-in-the-loop middleware. Front ends differ in whether they read `args` or
`arguments`, so each request has both.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from langgraph.runtime import ExecutionInfo

from packetgate.state.base import ConfidenceSource, now
from packetgate.state.origins import ArgumentRole
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.printing import code_span, escaped, fenced
from packetgate.state.routing import ToolCall
from packetgate.state.sections import AskedCall, OpenQuestion, PacketState, ParkedTurn, Status, recent_calls
from packetgate.tools.approval.remembering import remember_offers
from packetgate.tools.approval.replies import ANSWER
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.execution.permission import call_digest
from packetgate.tools.provenance.roles import secret_reference_in
from packetgate.tools.risk.call import LOOKS_LIKE_READ
from packetgate.tools.risk.tool import confirm_read_hint

CLARIFY = "A question for you"
STILL_WAITS = "Waiting for your decision; not run."


def nobody_to_ask(execution: ExecutionInfo | None) -> bool:
    """Return whether no user can be asked, because a run without a checkpointer has no thread to resume."""
    return execution is None or execution.thread_id is None


def waiting_update(packet: CognitionPacket, *calls: AskedCall, asks: bool = True) -> PacketUpdate:
    """Return the packet sections of a turn that waits for the user or, without `asks`, continues."""
    governance = packet.governance
    question = None
    if asks:
        expires = now() + timedelta(seconds=governance.settings.ask_timeout_s)
        problem = governance.question.problem if governance.question else ""
        question = OpenQuestion(expires_at=expires, calls=calls, problem=problem)
    state = PacketState.AWAITING_USER if asks else PacketState.PROCESSING
    return {
        "governance": governance.changed(question=question),
        "status": Status(state=state, next_steps=("ask_user",) if asks else ()),
    }


def approval_update(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, dry_runs: Mapping[str, ToolCall]
) -> PacketUpdate:
    """Return the packet sections of a turn that waits for the user's decisions on `calls`.

    The outputs of `dry_runs` (by call id) become previews in the question.
    """
    waiting = [call for call in calls if call.status.awaits_user]
    asked = [
        AskedCall(
            call_id=call.call_id,
            digest=call_digest(call, catalogue[call.tool_name]),
            preview=_preview(call, dry_runs.get(call.call_id)),
            remember=remember_offers(call, packet, catalogue),
        )
        for call in waiting
        if call.tool_name in catalogue
    ]
    return waiting_update(packet, *asked, asks=bool(waiting))


def interrupt_payload(packet: CognitionPacket, question: OpenQuestion, problem: str = "") -> dict[str, Any]:
    """Return the payload of the interrupt: the calls to decide, or a question that a text answers.

    Some front ends show only `description`, so it repeats everything else.
    """
    problem = problem or question.problem
    common = {"question_id": question.question_id, "expires_at": question.expires_at.isoformat()}
    if problem:
        common["problem"] = problem
    if packet.routing.outcome == "clarify" and packet.routing.question is not None:
        text = packet.routing.question
        return {
            "kind": "question",
            "question": text,
            "action_requests": [_request(CLARIFY, {ANSWER: ""}, text, problem)],
            "review_configs": [{"action_name": CLARIFY, "allowed_decisions": ["respond", "edit", "reject"]}],
            **common,
        }
    asked = {call.call_id: call for call in question.calls}
    calls = [call for call in packet.routing.calls if call.status.awaits_user]
    return {
        "kind": "approval",
        "action_requests": [_approval_request(call, asked.get(call.call_id), problem) for call in calls],
        "review_configs": [
            {
                "action_name": call.tool_name,
                # an edited call cannot replace a call that may have run
                "allowed_decisions": ["approve", *([] if call.started_at else ["edit"]), "reject", "respond"],
            }
            for call in calls
        ],
        **common,
    }


def parked_turns(packet: CognitionPacket) -> tuple[ParkedTurn, ...]:
    """Return the parked turns for a new turn, with this packet's turn if its question is open."""
    question = packet.governance.question
    if question is None or question.has_expired:
        return packet.parked_turns
    sections = {name: getattr(packet, name) for name in ParkedTurn.model_fields}
    return (*packet.parked_turns, ParkedTurn(**sections))


def drop_replaced_calls(packet: CognitionPacket) -> PacketUpdate:
    """Return the update that drops this turn's parked calls, which a newly selected call replaces."""
    return {"parked_turns": packet.parked_turns[:-1]} if _is_parked_itself(packet) else {}


def unpark_last(packet: CognitionPacket) -> PacketUpdate:
    """Return the sections that continue the last parked turn and ask its question again."""
    last = packet.parked_turns[-1]
    governance = last.governance
    if governance.question is not None:
        governance = governance.changed(question=governance.question.repeat(STILL_WAITS))
    newest = packet if _is_parked_itself(packet) else last
    session = packet.context.changed(earlier_calls=recent_calls(packet.calls_with_results))
    return {
        "header": last.header,
        "intent": last.intent,
        "context": last.context.with_session_fields_of(session),
        "content": last.content,
        "reasoning": newest.reasoning,
        "response": last.response,
        "governance": governance,
        "metrics": newest.metrics,
        "tool_routing": last.tool_routing,
        "status": Status(state=PacketState.AWAITING_USER, next_steps=("ask_user",)),
        "parked_turns": packet.parked_turns[:-1],
    }


def _is_parked_itself(packet: CognitionPacket) -> bool:
    return bool(packet.parked_turns) and packet.parked_turns[-1].header.packet_id == packet.header.packet_id


def _preview(call: ToolCall, dry_run: ToolCall | None) -> str:
    result = dry_run.result if dry_run else None
    if result is None or not result.dry_run or result.truncated or secret_reference_in(call.params):
        return ""
    return escaped(result.output)


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
        f"{call.tool_name} {LOOKS_LIKE_READ}. Trust it as a read?" if may_trust else confirm_read_hint(call),
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
