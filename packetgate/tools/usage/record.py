"""The record of a turn: its request, its tools and their outcomes, without argument values and results."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from statistics import fmean

from pydantic import ConfigDict

from packetgate.state.base import Confidence, ConfidenceSource, ErrorType, Section, storable
from packetgate.state.channels import PROXY
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import Access, ApprovalOutcome
from packetgate.state.transitions import ToolExecutionStatus

RECORDED_CHARS = 1_000
MAX_LABEL_CHARS = 200
"""Longest name that is recorded, in characters: a model may invent any name."""


class _Record(Section):
    model_config = ConfigDict(extra="ignore")


class ShownTool(_Record):
    """A tool of the turn's palette."""

    tool: str
    reason: str


class CallRecord(_Record):
    """Confidence, approval and outcome of one call."""

    tool: str
    risk: Risk
    arguments: tuple[str, ...] = ()
    """Names of the arguments, without their values."""
    selection_confidence: Confidence
    selection_confidence_source: ConfidenceSource
    review_confidence: Confidence | None = None
    """None if the call was not reviewed."""
    review_confidence_source: ConfidenceSource | None = None
    review_score: Confidence | None = None
    """The review's confidence before calibration."""
    review_kind: str = ""
    """The name of the review's calibration curve."""
    approval: ApprovalOutcome | None = None
    """None if nobody was asked."""
    status: ToolExecutionStatus
    dry_run: bool = False
    error: ErrorType | None = None
    execution_ms: float | None = None


class UsageRecord(_Record):
    """The record of one turn."""

    session_id: str
    origin: str = ""
    """The connector that received the request."""
    packet_id: str
    at: datetime
    """Start of the turn, in UTC."""
    asked: str
    """The request, at most `RECORDED_CHARS` characters."""
    context_type: str
    access: Access
    outcome: str | None = None
    """`ToolRouting.outcome` of the turn's last pass; None if no tool was needed."""
    palette: tuple[ShownTool, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    missed: tuple[str, ...] = ()
    """Selected names that were not on the palette."""


def usage_record(packet: CognitionPacket) -> UsageRecord:
    """Return the record of an ended turn."""
    routing = packet.tool_routing
    return UsageRecord(
        session_id=packet.header.session_id,
        origin=_cut(packet.header.origin),
        packet_id=packet.header.packet_id,
        at=packet.header.created_at,
        asked=_cut(packet.content.original_prompt, RECORDED_CHARS),
        context_type=_cut(packet.context.context_type),
        access=packet.intent.access,
        outcome=routing.outcome if routing else None,
        palette=tuple(ShownTool(tool=entry.tool_name, reason=entry.reason) for entry in packet.context.palette),
        calls=tuple(_call_record(call, packet) for call in routing.all_calls) if routing else (),
        missed=tuple(map(_cut, routing.missed_tools)) if routing else (),
    )


def _call_record(call: ToolCall, packet: CognitionPacket) -> CallRecord:
    review = next((one for one in packet.reasoning.evaluations if one.subject == call.call_id), None)
    approvals = {one.call_id: one.outcome for one in packet.governance.approvals if not one.by}
    result, has_failed = call.result, call.status in {ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN}
    return CallRecord(
        tool=_cut(call.tool_name),
        risk=call.risk,
        arguments=tuple(map(_cut, call.params)),
        selection_confidence=call.selection_confidence,
        selection_confidence_source=call.selection_confidence_source,
        review_confidence=call.review_confidence if review else None,
        review_confidence_source=call.review_confidence_source if review else None,
        review_score=review.stated if review else None,
        review_kind=review.kind if review else "",
        approval=approvals.get(call.call_id),
        status=call.status,
        dry_run=result is not None and result.dry_run,
        error=((result and result.error_type) or ErrorType.NO_ANSWER) if has_failed else None,
        execution_ms=result.execution_time_ms if result and result.execution_time_ms > 0 else None,
    )


def _cut(text: str, most: int = MAX_LABEL_CHARS) -> str:
    return storable(text[:most])


class ToolUsage(Section):
    """How often a tool was selected, and with which outcomes."""

    tool: str
    asked: int
    """How often it was selected."""
    executed: int
    failed: int
    denied: int
    skipped: int
    unknown: int
    review_confidence: Confidence | None
    """Mean confidence in the tool's reviewed calls; None if no call was reviewed."""
    last_used: datetime
    """Start of the last turn that selected it."""


def count_proxy_sessions(records: Iterable[UsageRecord]) -> tuple[int, int]:
    """Return the number of proxy sessions that set a context, and the number of all proxy sessions, with a call."""
    proxied = [record for record in records if record.origin == PROXY]
    sessions = {_session(record) for record in proxied}
    return len({_session(record) for record in proxied if record.asked}), len(sessions)


def _session(record: UsageRecord) -> tuple[str, ...]:
    return tuple(record.session_id.split("-")[:2])  # without the thread of a waiting call


def usage_by_tool(records: Iterable[UsageRecord]) -> list[ToolUsage]:
    """Return the usage of each selected tool, the most selected tool first."""
    calls: dict[str, list[tuple[datetime, CallRecord]]] = {}
    for record in records:
        for call in record.calls:
            calls.setdefault(call.tool, []).append((record.at, call))
    tools = []
    for tool, uses in calls.items():
        outcomes = Counter(call.status for _, call in uses)
        reviews = [call.review_confidence for _, call in uses if call.review_confidence is not None]
        usage = ToolUsage(
            tool=tool,
            asked=len(uses),
            executed=outcomes[ToolExecutionStatus.EXECUTED],
            failed=outcomes[ToolExecutionStatus.FAILED],
            denied=outcomes[ToolExecutionStatus.USER_DENIED],
            skipped=outcomes[ToolExecutionStatus.SKIPPED],
            unknown=outcomes[ToolExecutionStatus.UNKNOWN],
            review_confidence=fmean(reviews) if reviews else None,
            last_used=max(at for at, _ in uses),
        )
        tools.append(usage)
    return sorted(tools, key=lambda usage: (-usage.asked, -usage.executed, usage.tool))
