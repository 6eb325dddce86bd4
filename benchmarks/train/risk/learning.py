"""From examples to a model, and to scores of servers that the model has not seen."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.train.risk.data import Example, weights_of
from benchmarks.train.risk.fitting import Sparse, Vector, fit
from packetgate.tools.risk.features import VERSION, features_of
from packetgate.tools.risk.tool import RiskModel

PRIOR = 1.0
THRESHOLD = -0.25
"""Chosen on left-out servers, where a writer that is taken for a reader costs ten false alarms."""
_SMALL = 0.004
"""A weight below that is left out of the file."""

Features = Sequence[dict[str, float]]


def seen(examples: Sequence[Example]) -> Features:
    """Return the features of examples."""
    return [features_of(one.tool) for one in examples]


def learn(
    examples: Sequence[Example], features: Features, *, calibration: tuple[float, float] = (1.0, 0.0)
) -> RiskModel:
    """Return the model that these examples make."""
    often = Counter(name for row in features for name in row)
    names = sorted(name for name, count in often.items() if count > 1)
    labels = np.array([one.does_more for one in examples], dtype=np.float64)
    vocabulary = {name: at for at, name in enumerate(names)}
    weights, bias = fit(Sparse.of(features, vocabulary), labels, np.array(weights_of(examples)), prior=PRIOR)
    kept = {name: round(float(weight), 3) for name, weight in zip(names, weights, strict=True) if abs(weight) > _SMALL}
    return RiskModel(VERSION, round(bias, 3), THRESHOLD, *calibration, kept)


def left_out_models(
    examples: Sequence[Example], features: Features, group: Callable[[Example], str]
) -> dict[str, RiskModel]:
    """Return, for each group of the examples that a server labelled, the model that was trained without it."""
    groups = sorted({group(one) for one in examples if one.repository})
    kept = {
        name: [at for at, one in enumerate(examples) if not one.repository or group(one) != name] for name in groups
    }
    return {name: learn([examples[at] for at in ats], [features[at] for at in ats]) for name, ats in kept.items()}


def calibrated(scores: Vector, does_more: Vector, importance: Vector) -> tuple[float, float]:
    """Return the slope and the offset that make probabilities of scores (Platt)."""
    rows = [{"score": float(score)} for score in scores]
    weights, bias = fit(Sparse.of(rows, {"score": 0}), does_more, importance, prior=0.01)
    return round(float(weights[0]), 3), round(bias, 3)
