"""How probably a tool serves a request: signals about each candidate, weighed as learned from requests and tools.

The candidates and "none of them" share one probability. `serving.json` holds the weights; benchmarks/train fits them.
"""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from packetgate.tools.learned import DIGITS, json_of

FITTED = Path(__file__).with_name("serving.json")


class Signals(NamedTuple):
    """What speaks for and against a tool; each is weighed by the number of the same name."""

    always: float = 1.0
    judged: float = 0.0
    """Log odds that the encoder gives it."""
    near: float = 0.0
    """Cosine between the request and the tool."""
    known: float = 0.0
    """Share of the request's telling words that the tool knows."""
    named: float = 0.0
    """Share of the words of its name that the request holds."""
    place: float = 0.0
    """1 for the best ranked, 1/2 for the second, and so on."""
    verb: float = 0.0
    """Its name says what the request's verb may stand for."""
    outright: float = 0.0
    """It is called by its name."""
    path: float = 0.0
    """A file is named, and it takes one."""
    implied: float = 0.0
    """A file is named and no more asked for than to read it, and the tool's name says that it reads."""
    documents: float = 0.0
    """A question is about what it documents."""
    answers: float = 0.0
    """Something is asked, and all that it needs is what to look for."""
    practised: float = 0.0
    """Log odds that people ask so for it; of built-in tools only."""
    below: float = 0.0
    """It only reads, where the request asks for a change that its name does not say."""
    otherwise: float = 0.0
    """The request asks for a change, and the tool's name does not say that one."""
    deprecated: float = 0.0
    lacking: float = 0.0
    """Arguments that it needs and the request does not hold; at most 3."""
    certain: float = 0.0
    """Mean log probability of its arguments."""
    left: float = 0.0
    """Files, addresses, numbers and quoted texts that no argument takes; at most 3."""
    advice: float = 0.0
    """The request asks how or why, and names nothing to do it with."""


class Sureness(NamedTuple):
    """What tells how probably a call is right, tool and arguments, and what each counts."""

    always: float = 1.0
    share: float = 0.0
    """Log odds that its tool serves."""
    arguments: float = 0.0
    """Log probability of its arguments."""
    practised: float = 0.0
    """It is built in, so that what people ask of it was learned from."""
    filled: float = 0.0
    """How many of them there are; at most 6."""
    left: float = 0.0
    """As among the signals."""
    spare: float = 0.0
    """Names, dates and the like besides that no argument takes; at most 3."""
    unexplained: float = 0.0
    """Share of the telling words that neither the tool knows nor an argument takes, where one might."""
    named: float = 0.0
    """Optional arguments that the request has a word for, and that it is left out of; at most 3."""
    words: float = 0.0
    """Log of how many words the request has."""
    there: float = 0.0
    """A path among its arguments is there just as it is written; of built-in tools only."""


class Fitted(NamedTuple):
    """The weights."""

    serving: Signals
    sureness: Sureness


def shares(candidates: Sequence[Signals], fitted: Fitted | None = None) -> list[float]:
    """Return the probability that each is the one that serves, rounded; what is left to 1 is that none does."""
    scores = [score(one, fitted) for one in candidates]
    most = max([0.0, *scores])
    powers = [math.exp(score - most) for score in scores]
    total = math.exp(-most) + sum(powers)
    return [round(power / total, DIGITS) for power in powers]


def score(signals: Signals, fitted: Fitted | None = None) -> float:
    """Return the log odds that a candidate serves rather than none."""
    return _product(signals, (fitted or load_fitted()).serving)


def sure(told: Sureness, fitted: Fitted | None = None) -> float:
    """Return the probability that a call is right, in tool and arguments, rounded."""
    return logistic(told, (fitted or load_fitted()).sureness)


def logistic(told: Sequence[float], weights: Sequence[float]) -> float:
    """Return the probability whose log odds are what is told, weighed; rounded."""
    return round(1 / (1 + math.exp(-_product(told, weights))), DIGITS)


def _product(signals: Sequence[float], weights: Sequence[float]) -> float:
    return sum(signal * weight for signal, weight in zip(signals, weights, strict=True))


def log_odds(probability: float) -> float:
    """Return the log odds of a probability, which are kept within 7 of even."""
    return max(-7.0, min(7.0, math.log(max(probability, 1e-9) / max(1 - probability, 1e-9))))


@cache
def load_fitted() -> Fitted:
    """Return the weights that are shipped.

    Raises:
        WeightsError: their file is missing or broken.
    """
    return json_of(FITTED, lambda held: Fitted(Signals(**held["serving"]), Sureness(**held["sureness"])))
