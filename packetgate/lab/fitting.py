"""Fit calibration curves with Platt's method, and measure confidences.

A call that a person approved unchanged was right; one that was denied, edited or answered otherwise was wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import sqrt
from statistics import fmean

from packetgate.tools.calibration import AnsweredCall, Calibration, Curve, log_odds, logistic

MIN_ANSWERS = 20
"""With fewer answers than this, no curve is fitted."""
FOLDS = 5
BINS = 10
PRIOR = 1.0
"""Weight of the uncalibrated confidence when a curve is fitted, as a number of answers."""
_STEPS = 300
_LEAST_SLOPE = 0.05
"""Smallest slope of a curve, so that a higher confidence never gets a lower probability."""


def fit_curves(answers: Sequence[AnsweredCall]) -> Calibration:
    """Return the curve of each kind with enough answers, both right and wrong."""
    by_kind: dict[str, list[AnsweredCall]] = {}
    for answer in answers:
        by_kind.setdefault(answer.kind, []).append(answer)
    curves = {kind: _fit_curve(by_kind[kind]) for kind in sorted(by_kind)}
    return Calibration(curves={kind: curve for kind, curve in curves.items() if curve})


def held_out_confidences(answers: Sequence[AnsweredCall]) -> list[tuple[float, bool]]:
    """Return, for each answer, its confidence by curves fitted without it, and whether the call was right."""
    parts = [answers[fold::FOLDS] for fold in range(FOLDS)]
    decisions = []
    for part in parts:
        calibration = fit_curves([*chain.from_iterable(other for other in parts if other is not part)])
        decisions += [(calibration.confidence(one.kind, one.score), one.right) for one in part]
    return decisions


def _fit_curve(answers: Sequence[AnsweredCall]) -> Curve | None:
    """Return the most likely curve. Each step uses an upper bound of the curvature (Böhning and Lindsay 1988)."""
    right = sum(one.right for one in answers)
    if len(answers) < MIN_ANSWERS or right in {0, len(answers)}:
        return None
    points = [(log_odds(one.score), one.right) for one in answers]
    slope_bound = PRIOR + sum(odds**2 for odds, _ in points) / 4
    offset_bound = PRIOR + len(points) / 4
    slope, offset = 1.0, 0.0
    for _ in range(_STEPS):
        gradient = sum(odds * (logistic(slope * odds + offset) - right) for odds, right in points)
        slope = max(slope - (PRIOR * (slope - 1) + gradient) / slope_bound, _LEAST_SLOPE)
        gradient = sum(logistic(slope * odds + offset) - right for odds, right in points)
        offset -= (PRIOR * offset + gradient) / offset_bound
    return Curve(slope=slope, offset=offset, answers=len(answers))


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
