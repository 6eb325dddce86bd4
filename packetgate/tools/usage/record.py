"""The record of one turn: which tools it was shown, which it chose, how that ended. No argument's value is in it.

And what such records say of each tool.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from statistics import fmean

from pydantic import ConfigDict

from packetgate.state.base import Confidence, ConfidenceSource, ErrorType, Section, storable
from packetgate.state.channels import PROXY
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import Access, ApprovalOutcome, DecidedBy
from packetgate.state.transitions import ToolExecutionStatus

USAGE_VERSION = 1
"""Raised when a field changes its meaning or goes. A new field does not raise it: readers pass over it."""

ASKED_CHARS = 1_000
NAME_CHARS = 200
"""Names of arguments and of missed tools are a model's words: they may be as long as it likes."""

_SELECTED = ("select_tool", "review_selection")
"""The log's entries of a selection that made calls, and of what comes next."""


class _Record(Section):
    model_config = ConfigDict(extra="ignore")


class ShownTool(_Record):
    """A tool of the turn's palette, and why it was there."""

    tool: str
    reason: str


class CallRecord(_Record):
    """One call: how sure its deciders were, what the user said to it, and how it ended."""

    tool: str
    risk: Risk
    arguments: tuple[str, ...] = ()
    """Their names alone."""
    decided_by: DecidedBy | None = None
    """Who selected it; None where several passes were decided differently and the packet does not tell which."""
    selection_confidence: Confidence
    selection_confidence_source: ConfidenceSource
    review_confidence: Confidence | None = None
    """None where it was never reviewed."""
    review_confidence_source: ConfidenceSource | None = None
    review_score: Confidence | None = None
    """How sure the review was before any calibration."""
    review_kind: str = ""
    """Who reviewed it, and how that is known: `kind_of` of the calibration."""
    approval: ApprovalOutcome | None = None
    """None where no person was asked."""
    status: ToolExecutionStatus
    dry_run: bool = False
    error: ErrorType | None = None
    """The kind of failure alone: the words of an error may hold what nobody wants kept."""
    execution_ms: float | None = None


class UsageRecord(_Record):
    """One turn."""

    version: int = USAGE_VERSION
    session_id: str
    origin: str = ""
    """The connector; empty in records of before it was kept."""
    packet_id: str
    at: datetime
    """When the turn began, in UTC."""
    asked: str
    """The start of the request, at most `ASKED_CHARS` characters."""
    context_type: str
    access: Access
    """As last detected: a turn of several passes ends with a look for one more."""
    outcome: str | None = None
    """`ToolRouting.outcome` of the turn's last pass; None where no tool was needed."""
    palette: tuple[ShownTool, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    missed: tuple[str, ...] = ()
    """Names selected off the palette."""


def record_of(packet: CognitionPacket) -> UsageRecord:
    """Return the record of a turn that has come to its end."""
    routing = packet.tool_routing
    calls = routing.all_calls if routing else ()
    return UsageRecord(
        session_id=packet.header.session_id,
        origin=_text(packet.header.origin),
        packet_id=packet.header.packet_id,
        at=packet.header.created_at,
        asked=_text(packet.content.original_prompt, ASKED_CHARS),
        context_type=_text(packet.context.context_type),
        access=packet.intent.access,
        outcome=routing.outcome if routing else None,
        palette=tuple(ShownTool(tool=entry.tool_name, reason=entry.reason) for entry in packet.context.palette),
        calls=tuple(
            _call_record(call, packet, decided_by)
            for call, decided_by in zip(calls, _deciders(packet, len(calls)), strict=True)
        ),
        missed=tuple(_text(name) for name in routing.missed_tools) if routing else (),
    )


def _call_record(call: ToolCall, packet: CognitionPacket, decided_by: DecidedBy | None) -> CallRecord:
    said = next((one for one in packet.reasoning.evaluations if one.subject == call.call_id), None)
    reviewed = said is not None
    asked = {one.call_id: one.outcome for one in packet.governance.approvals if not one.by}
    answered = call.result is not None and call.result.execution_time_ms > 0
    failed = call.status in {ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN}
    return CallRecord(
        tool=_text(call.tool_name),
        risk=call.risk,
        arguments=tuple(_text(name) for name in call.params),
        decided_by=decided_by,
        selection_confidence=call.selection_confidence,
        selection_confidence_source=call.selection_confidence_source,
        review_confidence=call.review_confidence if reviewed else None,
        review_confidence_source=call.review_confidence_source if reviewed else None,
        review_score=said.stated if said else None,
        review_kind=said.kind if said else "",
        approval=asked.get(call.call_id),
        status=call.status,
        dry_run=call.result is not None and call.result.dry_run,
        error=((call.result and call.result.error_type) or ErrorType.NO_ANSWER) if failed else None,
        execution_ms=call.result.execution_time_ms if call.result and answered else None,
    )


def _deciders(packet: CognitionPacket, calls: int) -> list[DecidedBy | None]:
    """Return who selected each call. Only a selection that made calls is followed by a review."""
    log = packet.reasoning.reflection_log
    passes = [one.decided_by for one, after in pairwise(log) if (one.step, after.step) == _SELECTED]
    if len(passes) == calls:
        return passes
    return [passes[0] if len(set(passes)) == 1 else None] * calls


def _text(text: str, most: int = NAME_CHARS) -> str:
    """Return the start of a text, fit to be stored."""
    return storable(text[:most])


class ToolUsage(Section):
    """How often a tool was chosen, and what came of it."""

    tool: str
    asked: int
    """How often a selection chose it."""
    executed: int
    failed: int
    denied: int
    skipped: int
    unknown: int
    review_confidence: Confidence | None
    """The mean over the calls that were reviewed."""
    last_used: datetime
    """When a turn that chose it last began."""


def with_context(records: Iterable[UsageRecord]) -> tuple[int, int]:
    """Return how many proxy sessions set a context, and how many there are.

    Only sessions with a call are counted. A call that waits in a thread of its own belongs to the session it came from.
    """
    told: dict[tuple[str, ...], bool] = {}
    for record in records:
        if record.origin == PROXY:
            session = tuple(record.session_id.split("-")[:2])
            told[session] = told.get(session, False) or bool(record.asked)
    return sum(told.values()), len(told)


def by_tool(records: Iterable[UsageRecord]) -> list[ToolUsage]:
    """Return the tools that were chosen, the most chosen first."""
    chosen: dict[str, list[tuple[datetime, CallRecord]]] = {}
    for record in records:
        for call in record.calls:
            chosen.setdefault(call.tool, []).append((record.at, call))
    counted = [_counted(tool, calls) for tool, calls in chosen.items()]
    return sorted(counted, key=lambda usage: (-usage.asked, -usage.executed, usage.tool))


def _counted(tool: str, calls: list[tuple[datetime, CallRecord]]) -> ToolUsage:
    ended = Counter(call.status for _, call in calls)
    reviews = [call.review_confidence for _, call in calls if call.review_confidence is not None]
    return ToolUsage(
        tool=tool,
        asked=len(calls),
        executed=ended[ToolExecutionStatus.EXECUTED],
        failed=ended[ToolExecutionStatus.FAILED],
        denied=ended[ToolExecutionStatus.USER_DENIED],
        skipped=ended[ToolExecutionStatus.SKIPPED],
        unknown=ended[ToolExecutionStatus.UNKNOWN],
        review_confidence=fmean(reviews) if reviews else None,
        last_used=max(at for at, _ in calls),
    )
