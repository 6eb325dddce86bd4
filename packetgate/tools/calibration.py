"""Calibration curves, from a review's confidence to the measured probability that a call is right. `packetgate.lab`
fits them."""

from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from packetgate.state.base import Confidence, ConfidenceSource, Section
from packetgate.state.sections import DecidedBy

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

HALF_WEIGHT = 100
"""Number of evaluated calls from which a curve applies half of a raise."""
_NAMESPACE = ("packetgate", "calibration")
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
        odds = log_odds(score)
        change = self.slope * odds + self.offset - odds
        return logistic(odds + (self.adds * change if change > 0 else change))


class Calibration(Section):
    """The calibration curves by kind of review."""

    curves: dict[str, Curve] = {}
    version: str = ""
    """For a model's calibration: version of the evidence that it was fitted with."""
    summary: str = ""
    """For a model's calibration: one line about its data."""

    def confidence(self, kind: str, score: float) -> Confidence:
        """Return the calibrated confidence; without a curve for the kind, return `score`."""
        curve = self.curves.get(kind)
        return curve.at(score) if curve else score


def curve_name(decided_by: DecidedBy, source: ConfidenceSource) -> str:
    """Return the name of the curve for a review's confidence."""
    return f"{decided_by}, {source}"


async def read_calibration(store: "BaseStore", model_digest: str = "") -> Calibration:
    """Return the calibration from the user's answers, or a model's; it has no curves if none is stored."""
    item = await store.aget(_NAMESPACE, model_digest or "curves")
    return Calibration.model_validate(item.value) if item else Calibration()


async def save_calibration(store: "BaseStore", calibration: Calibration, model_digest: str = "") -> None:
    """Replace the calibration from the user's answers, or a model's."""
    await store.aput(_NAMESPACE, model_digest or "curves", calibration.model_dump(mode="json"), index=False)


def log_odds(score: float) -> float:
    """Return the log-odds of a probability, clamped away from 0 and 1."""
    inside = min(max(score, _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
    return log(inside / (1 - inside))


def logistic(value: float) -> float:
    """Return the probability for log-odds."""
    return 1 / (1 + exp(-min(max(value, -30.0), 30.0)))
