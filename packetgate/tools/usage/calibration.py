"""What the user's own answers say of a review's confidence, and the curve that makes it a probability (Platt's method).

Only what a person decided counts: a call that was approved as it was put was right; one that was denied, edited or
answered with something else was not. What ran unasked says nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from math import exp, log, sqrt
from statistics import fmean
from typing import NamedTuple, Self

from langgraph.store.base import BaseStore
from pydantic import Field

from packetgate.state.base import Confidence, ConfidenceSource, Section, now
from packetgate.state.sections import ApprovalOutcome, DecidedBy
from packetgate.tools.usage.record import UsageRecord

ROOT = ("packetgate", "calibration")
FEWEST = 20
"""Answers below which nothing is fitted."""
FOLDS = 5
HALF = 100
"""Calls of an evaluation at which half counts of what its curve adds."""
PRIOR = 1.0
"""How strongly a curve is held to what was said, in answers."""
_KEY = "curves"
_KEPT = 20
_STEPS = 300
_LEAST_SLOPE = 0.05
"""A surer review never counts for less."""
_EDGE = 1e-3
CHANGED = {ApprovalOutcome.DENIED, ApprovalOutcome.EDITED, ApprovalOutcome.ANSWERED}
"""What a person did to a call that was not right as it was put."""


class Answered(NamedTuple):
    """A call that a person decided."""

    kind: str
    """Who reviewed it, and by what kind of confidence: each has a curve of its own."""
    score: float
    """How sure the review was, before any calibration."""
    right: bool


class Curve(Section):
    """From how sure a review was to how probable it is to be right: the logistic of a line over the log-odds."""

    slope: float = Field(gt=0)
    offset: float
    answers: int
    """How many it was fitted on."""
    adds: float = Field(default=1.0, ge=0, le=1)
    """How much counts of what it adds to the log-odds; what it takes from them always does."""

    def shrunk(self) -> "Curve":
        """Return the curve with less counted of what it adds, the fewer it was fitted on."""
        return self.changed(adds=self.answers / (self.answers + HALF))

    def at(self, score: float) -> Confidence:
        """Return the probability that a review this sure is right."""
        said = _log_odds(score)
        change = self.slope * said + self.offset - said
        return _logistic(said + (self.adds * change if change > 0 else change))


class Calibration(Section):
    """The curves that were fitted at one time."""

    at: datetime = Field(default_factory=now)
    curves: dict[str, Curve] = {}

    def confidence(self, kind: str, score: float) -> Confidence:
        """Return the confidence that counts; where there is no curve, what the review said."""
        curve = self.curves.get(kind)
        return curve.at(score) if curve else score


class History(Section):
    """What was fitted so far, oldest first; the last one holds."""

    fitted: tuple[Calibration, ...] = ()

    @property
    def current(self) -> Calibration:
        """The curves that hold; none at first."""
        return self.fitted[-1] if self.fitted else Calibration()

    def with_next(self, one: Calibration) -> Self:
        """Return the history with a new calibration, the oldest forgotten."""
        return self.changed(fitted=(*self.fitted, one)[-_KEPT:])

    def undone(self) -> Self:
        """Return the history without the last calibration."""
        return self.changed(fitted=self.fitted[:-1])


def kind_of(decided_by: DecidedBy, source: ConfidenceSource) -> str:
    """Return the name of the curve for a review's confidence."""
    return f"{decided_by}, {source}"


def answered(records: Iterable[UsageRecord]) -> list[Answered]:
    """Return the calls that a person decided, oldest first."""
    return [
        Answered(call.review_kind, call.review_score, call.approval not in CHANGED)
        for record in records
        for call in record.calls
        if call.review_score is not None and call.approval in {*CHANGED, ApprovalOutcome.APPROVED}
    ]


def fitted(answers: Sequence[Answered]) -> Calibration:
    """Return the curve of each kind that was answered about often enough, in both ways."""
    curves = {
        kind: _fitted([one for one in answers if one.kind == kind]) for kind in sorted({one.kind for one in answers})
    }
    return Calibration(curves={kind: curve for kind, curve in curves.items() if curve})


def measured(answers: Sequence[Answered]) -> Calibration:
    """Return the curves of a model that was evaluated: the fewer the calls, the less counts of what a curve adds."""
    return Calibration(curves={kind: one.shrunk() for kind, one in fitted(answers).curves.items()})


def left_out(answers: Sequence[Answered]) -> list[tuple[float, bool]]:
    """Return for each answer what curves say that were fitted without it, and whether the call was right."""
    parts = [answers[fold::FOLDS] for fold in range(FOLDS)]
    told = []
    for part in parts:
        calibration = fitted([*chain.from_iterable(other for other in parts if other is not part)])
        told += [(calibration.confidence(one.kind, one.score), one.right) for one in part]
    return told


def loss(decisions: Sequence[tuple[float, bool]]) -> float:
    """Return the Brier score: the mean of the squared distance between what was said and what was so."""
    return fmean((said - right) ** 2 for said, right in decisions) if decisions else 0.0


async def read_history(store: BaseStore) -> History:
    """Return what was fitted so far."""
    item = await store.aget(ROOT, _KEY)
    return History.model_validate(item.value) if item else History()


async def save_history(store: BaseStore, history: History) -> None:
    """Keep it in place of the last."""
    await store.aput(ROOT, _KEY, history.model_dump(mode="json"), index=False)


def _fitted(answers: Sequence[Answered]) -> Curve | None:
    """Return the likeliest line: slope and offset in turn, by steps that take the curvature for the most it can be.

    So each step comes closer, whatever the answers (Böhning and Lindsay 1988).
    """
    right = sum(one.right for one in answers)
    if len(answers) < FEWEST or right in {0, len(answers)}:
        return None
    seen = [(_log_odds(one.score), one.right) for one in answers]
    steep = PRIOR + sum(odds**2 for odds, _ in seen) / 4
    flat = PRIOR + len(seen) / 4
    slope, offset = 1.0, 0.0
    for _ in range(_STEPS):
        down = sum(odds * (_logistic(slope * odds + offset) - right) for odds, right in seen)
        slope = max(slope - (PRIOR * (slope - 1) + down) / steep, _LEAST_SLOPE)
        aside = sum(_logistic(slope * odds + offset) - right for odds, right in seen)
        offset -= (PRIOR * offset + aside) / flat
    return Curve(slope=slope, offset=offset, answers=len(answers))


def _log_odds(score: float) -> float:
    inside = min(max(score, _EDGE), 1 - _EDGE)
    return log(inside / (1 - inside))


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-min(max(value, -30.0), 30.0)))


BINS = 10


@dataclass(frozen=True)
class Bin:
    """The decisions whose confidence lies from `low` up to `high`; the last bin holds 1.0 as well."""

    low: float
    high: float
    count: int
    confidence: float
    """Their mean."""
    right: float
    """The share of them that was right, from 0 to 1."""


def reliability(decisions: Iterable[tuple[float, bool]]) -> list[Bin]:
    """Return the bins that hold any decisions, each a confidence and whether it was right; the least sure first."""
    placed: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in decisions:
        at = int(confidence * BINS + 1e-9)  # 0.7 * 10 falls short of 7
        placed.setdefault(min(at, BINS - 1), []).append((confidence, right))
    return [
        Bin(
            low=at / BINS,
            high=(at + 1) / BINS,
            count=len(held),
            confidence=sum(confidence for confidence, _ in held) / len(held),
            right=sum(right for _, right in held) / len(held),
        )
        for at, held in sorted(placed.items())
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return how far confidence and correctness lie apart, on average (ECE); from 0 to 1, 0 is best."""
    decisions = sum(one.count for one in bins)
    return sum(one.count * abs(one.confidence - one.right) for one in bins) / decisions if decisions else 0.0


def auroc(right: Sequence[float], wrong: Sequence[float]) -> float | None:
    """Return how often what is right has the higher confidence, ties counting half; None without both kinds."""
    if not right or not wrong:
        return None
    return sum((one > other) + (one == other) / 2 for one in right for other in wrong) / (len(right) * len(wrong))


def interval(part: int, whole: int, z: float = 1.96) -> tuple[float, float]:
    """Return between which shares the true one lies with a probability of 95 % (Wilson), of at least one trial."""
    share, spread = part / whole, z * z / whole
    middle, half = share + spread / 2, z * sqrt(share * (1 - share) / whole + spread / whole / 4)
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))
