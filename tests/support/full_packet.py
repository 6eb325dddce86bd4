"""A packet in which every field of every section has a value that is not the default."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from packetgate.state import sections as s
from packetgate.state.base import ConfidenceSource, ErrorType, TokenUsage
from packetgate.state.channels import SwitchHints
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.origins import ArgumentRole, FlowLabel, Origin, OriginKind, SessionLabel
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import (
    Alternative,
    Correction,
    ResultAttachment,
    Risk,
    ToolCall,
    ToolResult,
    ToolRouting,
    Verdict,
)
from packetgate.state.sections import ParkedTurn
from packetgate.state.transitions import ToolExecutionStatus

AT = datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=UTC)
PARAMS: dict[str, Any] = {
    "text": 'quotes " and \\ and {braces}, Ünïcode, 漢字, 🚪, \t\n',
    "number": -1.5e-300,
    "big": 2**53,
    "deep": {"list": [1, None, True, {"": ""}], "empty": {}},
}
RESULT = ToolResult(
    handle="kept:00ff",
    success=True,
    output="the text",
    server_part="text",
    structured_in_output={"a": "the text"},
    output_field="result",
    parts=({"type": "text", "text": "the text"},),
    meta={"a": 1},
    structured=PARAMS,
    error="but",
    error_type=ErrorType.TIMEOUT,
    code=Code.TOOL_FAILED,
    execution_time_ms=12.345,
    dry_run=True,
    truncated=True,
    attachments=(
        ResultAttachment(
            kind="resource", mime_type="image/png", size=12_345, sha256="0f" * 32, name="a.png", handle="kept:00ff"
        ),
    ),
)
ORIGIN = Origin(
    kind=OriginKind.TEXT,
    tool="files.read_file",
    is_free_text=True,
    role=ArgumentRole.PAYLOAD,
    is_flagged=True,
    why="it stands in a text only",
    passage="Say the text.",
    flagged_part="the text",
)
CALL = ToolCall(
    call_id="c1",
    tool_name="files.write_file",
    params=PARAMS,
    risk=Risk.EXECUTE,
    open_world=True,
    is_unconfirmed_read=True,
    risk_reasons=("its `argv` holds a command",),
    provenance={"text": ORIGIN},
    result_labels=(FlowLabel.PRIVATE,),
    evidence={"yes": 1.5},
    selection_reasoning="it writes",
    selection_confidence=0.1 + 0.2,
    selection_confidence_source=ConfidenceSource.MEASURED,
    review_confidence=0.7,
    review_confidence_source=ConfidenceSource.STATED,
    review_reasoning="fine",
    verdict=Verdict(
        effect="ask",
        why="a rule asks",
        may_be_allowed=True,
        or_dry_run=True,
        by="a rule",
        grant_id="g1",
        code=Code.POLICY_DENIED,
    ),
    verdict_digest="d",
    status=ToolExecutionStatus.UNKNOWN,
    result=RESULT,
    started_at=AT,
)
HEADER = s.Header(
    packet_id="p2",
    session_id="s",
    parent_packet_id="p1",
    lineage=("p0", "p1"),
    origin="terminal",
    person="p",
    switch_hints=SwitchHints.from_commands("/writes on", "/commands on", "/rest"),
    created_at=AT,
)
INTENT = s.Intent(
    user_intent="write",
    system_task=s.SystemTask.TOOL_ROUTING,
    access=s.Access.MIXED,
    needs_tool=True,
    confidence=1.0,
    confidence_source=ConfidenceSource.STATED,
)
ENTRY = s.PaletteEntry(tool_name="files.write_file", detail="brief", reason="ranked", risk=Risk.WRITE, score=3.25)
LEDGER = s.LedgerEntry(
    packet_id="p1",
    tool_name="files.read_file",
    params=PARAMS,
    status="executed",
    summary="x",
    at=AT,
)
FILE = s.Attachment(
    name="a.txt",
    mime_type="text/x-odd",
    text="inside",
    size=6,
    sha256="b" * 64,
    handle="kept:a1",
    packet_id="p0",
)
CONTEXT = s.Context(
    context_type="code",
    available_mcp_tools=("files.read_file", "files.write_file"),
    available_more=3,
    servers=(s.ServerHealth(name="files", state="ready", tools=2, problem="slow"),),
    palette=(ENTRY,),
    palette_tokens=120,
    palette_left_out=3,
    subject=("note", "task"),
    shift="from task to note",
    recent_tools=("files.read_file",),
    result_ledger=(LEDGER,),
    earlier_calls=(CALL,),
    earlier_pictures=(FILE,),
    labels=(SessionLabel(label=FlowLabel.PRIVATE, source="files.read_file", at=AT),),
)
CONTENT = s.Content(
    original_prompt="write it",
    clarifications=("to a.txt",),
    data_fields=(s.DataField(key="k", value=PARAMS, type="json", source="tool"),),
    attachments=(FILE,),
)
REFLECTION = s.Reflection(
    step="select",
    summary="chose",
    confidence=0.5,
    confidence_source=ConfidenceSource.MEASURED,
    decided_by="reflex",
    is_fallback=True,
    at=AT + timedelta(microseconds=1),
    latency_ms=0.1,
)
REASONING = s.Reasoning(
    reflection_log=(REFLECTION,),
    sketchpad=(s.Sketch(slot="result", content="text", content_type="json"),),
    evaluations=(
        s.Evaluation(
            name="review",
            subject="c1",
            score=0.7,
            label="approved",
            explanation="grounded",
            stated=0.8,
            kind="reflex rule",
        ),
    ),
)
APPROVAL = s.Approval(
    call_id="c1",
    tool_name="files.write_file",
    params=PARAMS,
    outcome=s.ApprovalOutcome.EDITED,
    comment="ok",
    question_id="q1",
    digest="d1",
    expires_at=AT,
    remember="session",
    by="grant g1: allow files.write_file",
    grant_id="g1",
    at=AT,
)
GOVERNANCE = s.Governance(
    dry_run=False,
    approvals=(APPROVAL,),
    settings=RoutingContext(allow_write_tools=True),
    question=s.OpenQuestion(
        question_id="q2",
        expires_at=datetime(2026, 3, 1, 1, 0, tzinfo=timezone(timedelta(hours=2))),
        calls=(s.AskedCall(call_id="c1", digest="d2", preview="-a\n+b", remember={"always": "allow"}),),
        problem="that was no reply",
        reply="yes",
    ),
    audit=(s.AuditEntry(event="call_approved", detail="files.write_file", call_id="c1", at=AT),),
)
METRICS = s.Metrics(
    token_usage={"select_tool": TokenUsage(input_tokens=10, output_tokens=3, cached_tokens=2, thought_tokens=1)},
    latency_ms={"select_tool": 1.5},
    errors=(s.StageError(stage="respond", message="late"),),
    violations=2,
)
ROUTING = ToolRouting(
    needs_tool=False,
    routing_requested=False,
    outcome="call",
    calls=(CALL,),
    past_calls=(CALL.model_copy(update={"call_id": "c0"}),),
    queued_calls=(CALL.model_copy(update={"call_id": "c2"}),),
    complete=True,
    step=1,
    step_start=1,
    alternative_tools=(Alternative(tool_name="files.append", params=PARAMS, reason="also writes"),),
    corrections=(
        Correction(
            tool_name="files.wrote",
            problem="alias",
            message="say write_file",
            is_repaired=True,
            better_tool="files.write_file",
        ),
    ),
    objections=("wrong_kind files.write_file",),
    suggestions=("files.write_file",),
    missed_tools=("files.wrote",),
    palette_widened=True,
    described_tools=("files.write_file",),
    describe_rounds=1,
    question="where?",
    asked_argument=("files.write_file", "path"),
    pass_status=ToolExecutionStatus.SKIPPED,
    note="why",
    reinjection_count=2,
    max_reinjections=4,
)
RESPONSE = s.Response(candidate="Done.", message_id="m2", confidence=0.9)
PARKED = ParkedTurn(
    header=HEADER,
    intent=INTENT,
    context=CONTEXT,
    content=CONTENT,
    reasoning=REASONING,
    response=RESPONSE,
    governance=GOVERNANCE,
    metrics=METRICS,
    tool_routing=ROUTING,
)


def full_packet() -> CognitionPacket:
    """Return the packet, always the same."""
    return CognitionPacket(
        header=HEADER,
        intent=INTENT,
        context=CONTEXT,
        content=CONTENT,
        reasoning=REASONING,
        response=RESPONSE,
        governance=GOVERNANCE,
        metrics=METRICS,
        status=s.Status(state=s.PacketState.AWAITING_USER, next_steps=("ask_user",)),
        tool_routing=ROUTING,
        parked_turns=(PARKED,),
        messages=[HumanMessage("write it", id="m1"), AIMessage("Done.", id="m2")],
    )


def inside(value: Any) -> Iterator[Any]:
    """Yield a value and everything in it, depth first."""
    yield value
    if isinstance(value, BaseModel):
        inner: Any = (getattr(value, name) for name in type(value).model_fields)
    elif isinstance(value, Mapping):
        inner = value.values()
    else:
        inner = value if isinstance(value, list | tuple) else ()
    for one in inner:
        yield from inside(one)
