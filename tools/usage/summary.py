"""How each tool has fared, counted from the records."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from statistics import fmean

from state.base import Confidence, Section
from state.transitions import ToolExecutionStatus as Status
from tools.usage.record import CallRecord, UsageRecord


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
        executed=ended[Status.EXECUTED],
        failed=ended[Status.FAILED],
        denied=ended[Status.USER_DENIED],
        skipped=ended[Status.SKIPPED],
        unknown=ended[Status.UNKNOWN],
        review_confidence=fmean(reviews) if reviews else None,
        last_used=max(at for at, _ in calls),
    )
