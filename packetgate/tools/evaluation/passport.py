"""Evaluation report ("passport") of a model: results, calibration and recommended settings."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import Field

from packetgate.state.base import Confidence, Section, now
from packetgate.tools.evaluation.calibration import AnsweredCall, Calibration, Curve, auroc, fit_curves, wilson_interval

REQUIRED_RIGHT_SHARE = 0.95
MIN_CALLS = 20
"""With fewer calls than this, no setting is recommended."""
MIN_APPROVAL = 0.5
"""Lowest confidence with which a review approves a call."""


class EvaluatedCall(Section):
    """A call that was selected for a case."""

    tool: str
    right: bool
    review: str
    """Name of the review's calibration curve."""
    score: Confidence
    """The confidence of the review before calibration."""
    passed: bool
    """Whether the call passed the gate."""
    only_reads: bool
    """Whether `review = "risky"` would skip its review."""


class CaseResult(Section):
    """The result of a case."""

    version: str
    """Version of the cases and of the evidence weights."""
    case: str
    kind: str
    right: bool
    calls: tuple[EvaluatedCall, ...] = ()
    evaluated: int = 0
    """Number of prompt tokens that were not cached."""
    written: int = 0
    """Number of completion tokens."""
    seconds: float = 0.0
    problem: str = ""
    """Why the model gave no answer; empty if it did."""


class Share(NamedTuple):
    """The number of right calls, and the number of all calls."""

    right: int
    of: int

    @property
    def is_enough(self) -> bool:
        """Whether enough calls were right to recommend a setting."""
        return self.of >= MIN_CALLS and self.right >= REQUIRED_RIGHT_SHARE * self.of

    def __str__(self) -> str:
        """Return the share as text, with its confidence interval."""
        low, high = wilson_interval(self.right, self.of) if self.of else (0, 1)
        return f"{self.right} of {self.of} right ({low:.0%} to {high:.0%})" if self.of else "none"


class CaseCounts(NamedTuple):
    """Numbers of all cases, right cases, cases with a wrong call, and cases whose wrong call passed the gate."""

    cases: int
    right: int
    wrong_call: int
    wrong_call_passed: int


class Passport(Section):
    """The evaluation of a model on at least one case."""

    version: str
    at: datetime = Field(default_factory=now)
    model: str
    own_language: bool
    """Whether the model calls tools in its own syntax; otherwise it answers in JSON."""
    threshold: Confidence
    of: int
    """Number of all cases; fewer may have been evaluated."""
    rows: tuple[CaseResult, ...]
    curves: dict[str, Curve]

    @property
    def calls(self) -> list[EvaluatedCall]:
        """The calls of all cases."""
        return [call for row in self.rows for call in row.calls]

    @property
    def answers(self) -> list[tuple[float, bool]]:
        """The review's confidence in each call, and whether the call was right."""
        return [(call.score, call.right) for call in self.calls]

    @property
    def auroc(self) -> float | None:
        """Probability that a right call has a higher confidence than a wrong call."""
        return auroc(self.answers)

    @property
    def passed(self) -> Share:
        """The share of right calls among those that passed the gate."""
        return _share(call.right for call in self.calls if call.passed)

    @property
    def reads(self) -> Share:
        """The share of right calls among those whose review `review = "risky"` would skip."""
        return _share(call.right for call in self.calls if call.only_reads)

    @property
    def review(self) -> str:
        """The recommended setting `review`."""
        return "risky" if self.reads.is_enough else "all"

    @property
    def recommended_threshold(self) -> tuple[float, Share] | None:
        """The lowest calibrated threshold above which enough calls were right, with their share, or None."""
        calibration = Calibration(curves=self.curves)
        calls = [call for call in self.calls if call.score >= MIN_APPROVAL]
        decisions = [(calibration.confidence(call.review, call.score), call.right) for call in calls]
        for least in sorted({int(confidence * 100) / 100 for confidence, _ in decisions}):
            share = _share(right for confidence, right in decisions if confidence >= least)
            if share.is_enough:
                return least, share
        return None

    @property
    def review_reliability(self) -> str:
        """One line on how reliable the model's reviews are."""
        area = "" if self.auroc is None else f", AUROC {self.auroc:.2f} over {len(self.answers)}"
        return f"of the calls past the gate {self.passed}{area}"

    def count_cases(self, kind: str = "") -> CaseCounts:
        """Return the numbers of cases of a kind, or of all cases."""
        rows = [row for row in self.rows if kind in {row.kind, ""}]
        wrong = [[call for call in row.calls if not call.right] for row in rows]
        passed = sum(any(call.passed for call in calls) for calls in wrong)
        return CaseCounts(len(rows), sum(row.right for row in rows), sum(map(bool, wrong)), passed)

    def mean(self, field: str) -> float:
        """Return the mean of a numeric field of `CaseResult` over the cases without a problem."""
        values = [getattr(row, field) for row in self.rows if not row.problem]
        return sum(values) / len(values) if values else 0.0


def fit_case_curves(rows: Sequence[CaseResult]) -> dict[str, Curve]:
    """Return the calibration curves of a model, fitted to its calls. A curve of few calls raises a confidence less."""
    answers = [AnsweredCall(call.review, call.score, call.right) for row in rows for call in row.calls]
    return {kind: curve.with_damped_raises() for kind, curve in fit_curves(answers).curves.items()}


def _share(right: Iterable[bool]) -> Share:
    calls = list(right)
    return Share(sum(calls), len(calls))
