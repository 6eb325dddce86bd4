"""What another threshold, calibration or set of rules would have made of the calls on record.

No argument's value is on record, so a rule that speaks of one holds for none of them: such calls are counted.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from packetgate.state.routing import Risk
from packetgate.state.sections import ApprovalOutcome
from packetgate.tools.policy.rules import Effect, Rule, ruling
from packetgate.tools.usage.calibration import CHANGED, Calibration
from packetgate.tools.usage.record import CallRecord, UsageRecord

End = Literal["run unasked", "asked about", "denied by a rule"]


@dataclass(frozen=True)
class Replayed:
    """What became of the calls, and what would have."""

    turns: int
    calls: int
    """Those that were reviewed."""
    then: dict[End, int]
    now: dict[End, int]
    denied_and_run: int
    """Calls that a person denied or changed, and that would run unasked now."""
    approved_and_asked: int
    """Calls that a person approved as they were put, and that would be asked about now too."""
    by_arguments: int
    """Calls that a rule speaks of by their arguments, which nothing is known of."""


def replayed(
    records: Sequence[UsageRecord], calibration: Calibration, threshold: float, rules: Sequence[Rule]
) -> Replayed:
    """Return what a threshold, a calibration and rules would have made of reviewed calls."""
    calls = [call for record in records for call in record.calls if call.review_score is not None]
    ends = [(call, _end(call, calibration, threshold, rules)) for call in calls]
    return Replayed(
        turns=len(records),
        calls=len(calls),
        then=_counted("asked about" if call.approval is not None else "run unasked" for call in calls),
        now=_counted(end for _, end in ends),
        denied_and_run=sum(end == "run unasked" and call.approval in CHANGED for call, end in ends),
        approved_and_asked=sum(
            end == "asked about" and call.approval is ApprovalOutcome.APPROVED for call, end in ends
        ),
        by_arguments=sum(any(rule.arguments for rule in _about(call, rules)) for call in calls),
    )


def _counted(ends: Iterable[End]) -> dict[End, int]:
    return dict(Counter(ends))


def _end(call: CallRecord, calibration: Calibration, threshold: float, rules: Sequence[Rule]) -> End:
    holding = [rule for rule in _about(call, rules) if not rule.arguments]
    rule = ruling(holding, {}, (), "unknown")
    if rule is not None and rule.effect is Effect.DENY:
        return "denied by a rule"
    unsure = calibration.confidence(call.review_kind, call.review_score or 0.0) < threshold
    asks = rule.effect is Effect.ASK if rule is not None else call.risk is not Risk.READ
    return "asked about" if unsure or asks else "run unasked"


def _about(call: CallRecord, rules: Iterable[Rule]) -> list[Rule]:
    return [rule for rule in rules if rule.is_about(call.tool, call.tool.partition(".")[0])]
