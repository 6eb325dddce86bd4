"""Past turns and what became of their calls, read from the journal."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from packetgate.gate.journal import CALL_REVIEWED, RecordedEntry
from packetgate.graph.journal import DatabaseJournal
from packetgate.state.base import Confidence, now
from packetgate.state.sections import ApprovalOutcome
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.evaluation.calibration import AnsweredCall
from packetgate.tools.policy.trial import ProposedCall

_ENDED = {f"call_{status}": status for status in ToolExecutionStatus}
_DECIDED = {f"call_{outcome}": outcome for outcome in ApprovalOutcome}
_STATUSES = {
    ApprovalOutcome.APPROVED: ToolExecutionStatus.APPROVED,
    ApprovalOutcome.EDITED: ToolExecutionStatus.APPROVED,
    ApprovalOutcome.DENIED: ToolExecutionStatus.USER_DENIED,
}
"""Statuses of calls after a person's decision; all others are skipped."""
_WRONG_OUTCOMES = {ApprovalOutcome.DENIED, ApprovalOutcome.EDITED, ApprovalOutcome.ANSWERED}


@dataclass(frozen=True)
class PastCall:
    """A call, its review and its outcome."""

    tool: str
    status: ToolExecutionStatus = ToolExecutionStatus.PENDING
    approval: ApprovalOutcome | None = None
    """The person's decision; None if nobody was asked."""
    review_confidence: Confidence | None = None
    """None if the call was not reviewed."""
    review_score: Confidence | None = None
    """The review's confidence before calibration."""
    review_kind: str = ""
    """The name of the review's calibration curve."""


@dataclass(frozen=True)
class PastTurn:
    """A turn, with its calls by id."""

    session_id: str
    at: datetime
    origin: str
    """The connector that received the request."""
    asked: str
    calls: dict[str, PastCall] = field(default_factory=dict)


async def read_turns(journal: DatabaseJournal, days: int) -> list[PastTurn]:
    """Return the turns of the last `days`, oldest first, without those of forgotten sessions."""
    events = {"turn_opened", "call_proposed", CALL_REVIEWED, *_ENDED, *_DECIDED}
    return past_turns(await journal.event_entries(*sorted(events), since=now() - timedelta(days=days)))


async def proposed_calls(journal: DatabaseJournal, days: int) -> list[ProposedCall]:
    """Return the calls that were proposed in the last `days`, oldest first."""
    rows = await journal.event_entries("turn_opened", "call_proposed", since=now() - timedelta(days=days))
    channels = {row.entry.packet_id: str(row.entry.detail["channel"]) for row in rows if "channel" in row.entry.detail}
    return [
        ProposedCall(row.at, str(row.entry.detail["tool_name"]), params, channels.get(row.entry.packet_id, "unknown"))
        for row in rows
        if row.entry.event == "call_proposed"
        if isinstance(params := row.entry.detail.get("params"), dict)
    ]


def past_turns(rows: Iterable[RecordedEntry]) -> list[PastTurn]:
    """Return the turns of which the journal has the beginning."""
    turns: dict[str, PastTurn] = {}
    for row in rows:
        entry, detail = row.entry, row.entry.detail
        with suppress(LookupError, ValueError):  # a forgotten session, or a turn without its beginning
            if entry.event == "turn_opened":
                asked = str(detail["request"])
                turns[entry.packet_id] = PastTurn(entry.session_id, row.at, str(detail["channel"]), asked)
            elif entry.event == "call_proposed":
                turns[entry.packet_id].calls[entry.call_id] = PastCall(
                    str(detail["tool_name"]), ToolExecutionStatus(str(detail.get("status", "pending")))
                )
            else:
                calls = turns[entry.packet_id].calls
                calls[entry.call_id] = replace(calls[entry.call_id], **_change(entry.event, detail))
    return [*turns.values()]


def _change(event: str, detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a call that an event changes."""
    if event == CALL_REVIEWED:
        review = {"review_confidence": detail["score"], "review_score": detail["stated"], "review_kind": detail["kind"]}
        return {**review, "status": ToolExecutionStatus(detail["status"])}
    if "params" not in detail:
        return {"status": _ENDED[event]}
    outcome = _DECIDED[event]
    by_person = {"approval": outcome, "status": _STATUSES.get(outcome, ToolExecutionStatus.SKIPPED)}
    return {} if detail["by"] else by_person


def answered_calls(turns: Iterable[PastTurn]) -> list[AnsweredCall]:
    """Return the reviewed calls that a person decided, oldest first."""
    return [
        AnsweredCall(call.review_kind, call.review_score, call.approval not in _WRONG_OUTCOMES)
        for turn in turns
        for call in turn.calls.values()
        if call.review_score is not None and call.approval in {*_WRONG_OUTCOMES, ApprovalOutcome.APPROVED}
    ]


@dataclass(frozen=True)
class ToolUsage:
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


def usage_by_tool(turns: Iterable[PastTurn]) -> list[ToolUsage]:
    """Return the usage of each selected tool, the most selected tool first."""
    calls: dict[str, list[tuple[datetime, PastCall]]] = {}
    for turn in turns:
        for call in turn.calls.values():
            calls.setdefault(call.tool, []).append((turn.at, call))
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
