"""Calibrate a review's confidence by the user's answers, with Platt's method.

A call that a person approved unchanged was right; one that was denied, edited or answered otherwise was wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import exp, log, sqrt
from statistics import fmean
from typing import NamedTuple

from langgraph.store.base import BaseStore
from pydantic import Field

from packetgate.state.base import Confidence, ConfidenceSource, Section
from packetgate.state.sections import DecidedBy

MIN_ANSWERS = 20
"""With fewer answers than this, no curve is fitted."""
FOLDS = 5
BINS = 10
HALF_WEIGHT = 100
"""Number of evaluated calls from which a curve applies half of a raise."""
PRIOR = 1.0
"""Weight of the uncalibrated confidence when a curve is fitted, as a number of answers."""
_STORE_KEY = ("packetgate", "calibration"), "curves"
_STEPS = 300
_LEAST_SLOPE = 0.05
"""Smallest slope of a curve, so that a higher confidence never gets a lower probability."""
_MIN_PROBABILITY = 1e-3


class AnsweredCall(NamedTuple):
    """A call that a person decided."""

    kind: str
    """Reviewer and source of the confidence. Each kind has its own curve."""
    score: float
    """The review's confidence before calibration."""
    right: bool


class Curve(Section):
    """Map a review's confidence to a probability by a linear function of its log-odds."""

    slope: float = Field(gt=0)
    offset: float
    answers: int
    """Number of answers to which the curve was fitted."""
    adds: float = Field(default=1.0, ge=0, le=1)
    """Share of a raise that is applied; a reduction is always applied in full."""

    def with_damped_raises(self) -> "Curve":
        """Return a copy that raises a confidence less. The fewer answers the curve has, the less it raises."""
        return self.changed(adds=self.answers / (self.answers + HALF_WEIGHT))

    def at(self, score: float) -> Confidence:
        """Return the calibrated confidence."""
        odds = _log_odds(score)
        change = self.slope * odds + self.offset - odds
        return _logistic(odds + (self.adds * change if change > 0 else change))


class Calibration(Section):
    """The calibration curves by kind of review."""

    curves: dict[str, Curve] = {}

    def confidence(self, kind: str, score: float) -> Confidence:
        """Return the calibrated confidence; without a curve for the kind, return `score`."""
        curve = self.curves.get(kind)
        return curve.at(score) if curve else score


def curve_name(decided_by: DecidedBy, source: ConfidenceSource) -> str:
    """Return the name of the curve for a review's confidence."""
    return f"{decided_by}, {source}"


def fit_curves(answers: Sequence[AnsweredCall]) -> Calibration:
    """Return the curve of each kind with enough answers, both right and wrong."""
    by_kind: dict[str, list[AnsweredCall]] = {}
    for answer in answers:
        by_kind.setdefault(answer.kind, []).append(answer)
    curves = {kind: _fit_curve(by_kind[kind]) for kind in sorted(by_kind)}
    return Calibration(curves={kind: curve for kind, curve in curves.items() if curve})


def held_out_confidences(answers: Sequence[AnsweredCall]) -> list[tuple[float, bool]]:
    """Return for each answer whether the call was right, after its confidence by curves that were fitted without it."""
    parts = [answers[fold::FOLDS] for fold in range(FOLDS)]
    decisions = []
    for part in parts:
        calibration = fit_curves([*chain.from_iterable(other for other in parts if other is not part)])
        decisions += [(calibration.confidence(one.kind, one.score), one.right) for one in part]
    return decisions


async def read_calibration(store: BaseStore) -> Calibration:
    """Return the stored calibration, or a calibration without curves."""
    item = await store.aget(*_STORE_KEY)
    return Calibration.model_validate(item.value) if item else Calibration()


async def save_calibration(store: BaseStore, calibration: Calibration) -> None:
    """Replace the stored calibration."""
    await store.aput(*_STORE_KEY, calibration.model_dump(mode="json"), index=False)


def _fit_curve(answers: Sequence[AnsweredCall]) -> Curve | None:
    """Return the most likely curve. Each step uses an upper bound of the curvature (Böhning and Lindsay 1988)."""
    right = sum(one.right for one in answers)
    if len(answers) < MIN_ANSWERS or right in {0, len(answers)}:
        return None
    points = [(_log_odds(one.score), one.right) for one in answers]
    slope_bound = PRIOR + sum(odds**2 for odds, _ in points) / 4
    offset_bound = PRIOR + len(points) / 4
    slope, offset = 1.0, 0.0
    for _ in range(_STEPS):
        gradient = sum(odds * (_logistic(slope * odds + offset) - right) for odds, right in points)
        slope = max(slope - (PRIOR * (slope - 1) + gradient) / slope_bound, _LEAST_SLOPE)
        gradient = sum(_logistic(slope * odds + offset) - right for odds, right in points)
        offset -= (PRIOR * offset + gradient) / offset_bound
    return Curve(slope=slope, offset=offset, answers=len(answers))


def _log_odds(score: float) -> float:
    inside = min(max(score, _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
    return log(inside / (1 - inside))


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-min(max(value, -30.0), 30.0)))


@dataclass(frozen=True)
class Bin:
    """The decisions with a confidence from `low` up to `high`; the last bin includes 1.0."""

    low: float
    high: float
    count: int
    confidence: float
    """The mean confidence of the decisions."""
    right: float
    """Share of right decisions, from 0 to 1."""


def reliability(decisions: Iterable[tuple[float, bool]]) -> list[Bin]:
    """Return the non-empty bins of decisions (confidence, right), lowest confidence first."""
    placed: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in decisions:
        at = int(confidence * BINS + 1e-9)  # in floating point, 0.7 * 10 is less than 7
        placed.setdefault(min(at, BINS - 1), []).append((confidence, right))
    return [
        Bin(at / BINS, (at + 1) / BINS, len(pairs), *(fmean(values) for values in zip(*pairs, strict=True)))
        for at, pairs in sorted(placed.items())
    ]


def brier_score(decisions: Sequence[tuple[float, bool]]) -> float:
    """Return the Brier score: the mean squared difference between confidence and outcome."""
    return fmean((confidence - right) ** 2 for confidence, right in decisions) if decisions else 0.0


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error (ECE), from 0 (best) to 1."""
    decisions = sum(one.count for one in bins)
    return sum(one.count * abs(one.confidence - one.right) for one in bins) / decisions if decisions else 0.0


def auroc(decisions: Sequence[tuple[float, bool]]) -> float | None:
    """Return the probability that a right decision has a higher confidence than a wrong decision; ties count half.

    None if all decisions are right or all are wrong.
    """
    right, wrong = ([confidence for confidence, is_right in decisions if is_right is kind] for kind in (True, False))
    wins = sum((one > other) + (one == other) / 2 for one in right for other in wrong)
    return wins / (len(right) * len(wrong)) if right and wrong else None


def wilson_interval(part: int, whole: int, z: float = 1.96) -> tuple[float, float]:
    """Return the 95 % confidence interval (Wilson) of `part` successes in `whole` trials, at least one trial."""
    share, spread = part / whole, z * z / whole
    middle, half = share + spread / 2, z * sqrt(share * (1 - share) / whole + spread / whole / 4)
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))
