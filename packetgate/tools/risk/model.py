"""The linear model: its weights, and what a tool's text comes to by them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

from packetgate.tools.learned import json_of
from packetgate.tools.risk.features import VERSION

WEIGHTS = Path(__file__).with_name("weights.json")


@dataclass(frozen=True)
class Model:
    """Weights by feature; a score above the threshold means that a tool does more than read."""

    version: int
    bias: float
    threshold: float
    slope: float
    """With `offset`: a score's probability, as measured on servers that were left out."""
    offset: float
    weights: Mapping[str, float]

    def parts(self, features: Mapping[str, float]) -> dict[str, float]:
        """Return what each feature adds to the score."""
        return {name: value * self.weights[name] for name, value in features.items() if name in self.weights}

    def score(self, features: Mapping[str, float]) -> float:
        """Return how much a tool's text speaks for more than reading."""
        return self.bias + sum(self.parts(features).values())

    def probability(self, score: float) -> float:
        """Return how probable it is that a tool of that score writes or executes."""
        return 1 / (1 + exp(-max(-50.0, min(50.0, self.slope * score + self.offset))))


@cache
def model() -> Model:
    """Return the model that is shipped.

    Raises:
        WeightsError: its file is missing or broken, or its weights are of other features than this version sees.
    """
    return json_of(WEIGHTS, _of_this_version)


def _of_this_version(held: Mapping[str, Any]) -> Model:
    loaded = Model(**held)
    if loaded.version != VERSION:
        raise ValueError(f"features {loaded.version}, not {VERSION}: train it anew")
    return loaded
