"""Evaluation report ("passport") of a model: results, calibration and recommended settings."""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from typing import NamedTuple

from langgraph.store.base import BaseStore

from packetgate.graph.records import evidence_version
from packetgate.lab.cases import FILE
from packetgate.lab.fitting import auroc, fit_curves, wilson_interval
from packetgate.ranking.store import delete_items
from packetgate.state.base import Confidence, Section
from packetgate.tools.calibration import AnsweredCall, Calibration, Curve, save_calibration

REQUIRED_RIGHT_SHARE = 0.95
MIN_CALLS = 20
"""With fewer calls than this, no setting is recommended."""
_NAMESPACE = ("packetgate", "evaluations")
_ALL = 1_000_000
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

    model: str
    own_language: bool
    """Whether the model calls tools in its own syntax; otherwise, tools are described in words."""
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


@cache
def evaluation_version() -> str:
    """Return a digest of the cases and of the evidence's weights: results of other versions do not count."""
    form = f"{[*EvaluatedCall.model_fields, *CaseResult.model_fields]}"
    return hashlib.sha256(FILE.read_bytes() + evidence_version().encode() + form.encode()).hexdigest()[:16]


async def read_case_results(store: BaseStore, model_digest: str) -> dict[str, CaseResult]:
    """Return a model's case results by case name."""
    items = await store.asearch((*_NAMESPACE, model_digest), filter={"version": evaluation_version()}, limit=_ALL)
    return {item.key: CaseResult.model_validate(item.value) for item in items}


async def save_case_result(store: BaseStore, model_digest: str, result: CaseResult) -> None:
    """Store the result of a case."""
    await store.aput((*_NAMESPACE, model_digest), result.case, result.model_dump(mode="json"), index=False)


async def save_passport(store: BaseStore, model_digest: str, passport: Passport) -> None:
    """Store the parts of a passport that turns need: the curves, and a line for `packetgate doctor`."""
    right = f"{passport.count_cases().right} of {passport.of} cases right, {passport.review_reliability}"
    calibration = Calibration(curves=passport.curves, version=evidence_version(), summary=f"{right}; on {date.today()}")
    await save_calibration(store, calibration, model_digest)


async def forget_evaluation(store: BaseStore, model_digest: str) -> None:
    """Delete all evaluation results of a model."""
    await delete_items(store, await store.asearch((*_NAMESPACE, model_digest), limit=_ALL))
    await save_calibration(store, Calibration(), model_digest)


def _share(right: Iterable[bool]) -> Share:
    calls = list(right)
    return Share(sum(calls), len(calls))
