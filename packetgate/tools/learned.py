"""Load learned weights, and turn them into probabilities. A missing, broken or invalid file raises `WeightsError`."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from packetgate.state.errors import WeightsError

Form = TypeVar("Form")

DIGITS = 3
"""Decimal places to which scores are rounded before a comparison, because processors differ by up to 1e-4."""


def logistic(signals: Sequence[float], weights: Sequence[float]) -> float:
    """Return the rounded probability from a logistic regression with these weights."""
    return round(1 / (1 + math.exp(-weighted(signals, weights))), DIGITS)


def weighted(signals: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted sum of signals."""
    return sum(signal * weight for signal, weight in zip(signals, weights, strict=True))


def log_odds(probability: float) -> float:
    """Return the log odds of a probability, from -7 to 7."""
    return max(-7.0, min(7.0, math.log(max(probability, 1e-9) / max(1 - probability, 1e-9))))


def load_json(path: Path, form: Callable[[Any], Form]) -> Form:
    """Return `form(content)` for the content of a JSON file."""
    with checked_file(path):
        return form(json.loads(path.read_text(encoding="utf-8")))


@contextmanager
def checked_file(path: Path) -> Iterator[None]:
    """Raise `WeightsError` for any error while a file of weights is read."""
    try:
        yield
    except Exception as error:  # the libraries' errors have no other common class
        raise WeightsError(f"{path}: these weights are missing or broken; reinstall Packetgate: {error}") from error
