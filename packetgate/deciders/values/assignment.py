"""Which words of a request fill which parameter: all parameters at once, so that none takes what is another's."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from packetgate.deciders.values.candidates import Candidate
from packetgate.deciders.values.mentions import Span
from packetgate.deciders.values.schema import Parameter
from packetgate.tools.learned import DIGITS

KEPT = 6
"""Best candidates of a parameter that are weighed against those of the others."""
BEAM = 48
TWICE = 6.0
"""What it costs, in log odds, that two parameters take the same words."""
SWAPPED = 0.7
"""That two of a kind stand the other way round than their parameters in the schema."""
UNUSED = 0.5
"""That nothing takes words that stand for nothing but a value."""
SKIPPED = 2.5
"""That a required parameter gets nothing, and a later one of its type does."""


@dataclass(frozen=True)
class Ranked:
    """A parameter's candidates with the probability of each, `NONE` among them."""

    parameter: Parameter
    found: Sequence[Candidate]
    probabilities: NDArray[np.float64]


class Chosen(NamedTuple):
    """What fills a parameter, and how probably."""

    candidate: Candidate
    probability: float


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities that scores of alternatives come to."""
    exponents = np.exp(scores - scores.max())
    return np.asarray(exponents / exponents.sum(), dtype=np.float64)


def assign(ranked: Sequence[Ranked], values: Sequence[Span] = ()) -> list[Chosen]:
    """Return what fills each parameter: the most probable choice of all of them together.

    Args:
        ranked: The parameters.
        values: Words that are there to be taken.
    """
    order = sorted(range(len(ranked)), key=lambda at: -float(ranked[at].probabilities.max()))
    beam: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for depth, at in enumerate(order):
        best = np.argsort(-ranked[at].probabilities, kind="stable")[:KEPT]
        if 0 not in best:
            best = np.append(best, 0)
        grown = [
            (
                score
                + float(np.log(ranked[at].probabilities[one] + 1e-9))
                - _doubled(ranked, order[:depth], taken, ranked[at].parameter, ranked[at].found[one]),
                (*taken, int(one)),
            )
            for score, taken in beam
            for one in best
        ]
        beam = sorted(grown, key=lambda state: -round(state[0], DIGITS))[:BEAM]
    ways = [taken for _, taken in beam]
    shares = softmax(np.array([score - UNUSED * _unused(ranked, order, taken, values) for score, taken in beam]))
    chosen = ways[int(shares.round(DIGITS).argmax())]
    found = {
        at: Chosen(ranked[at].found[chosen[place]], _share(ways, shares, place, chosen[place]))
        for place, at in enumerate(order)
    }
    return [found[at] for at in range(len(ranked))]


def _share(ways: Sequence[tuple[int, ...]], shares: NDArray[np.float64], place: int, one: int) -> float:
    """Return how probably a parameter gets a candidate: the share of the ways in which it does."""
    return min(
        1.0, round(float(sum(share for way, share in zip(ways, shares, strict=True) if way[place] == one)), DIGITS)
    )


def _unused(ranked: Sequence[Ranked], order: Sequence[int], taken: Sequence[int], values: Sequence[Span]) -> int:
    """Return how many values none of the choices takes."""
    spans = [ranked[at].found[index].span for at, index in zip(order, taken, strict=True)]
    return sum(not any(one and one.first < value.last and value.first < one.last for one in spans) for value in values)


def _doubled(
    ranked: Sequence[Ranked], before: Sequence[int], taken: Sequence[int], parameter: Parameter, new: Candidate
) -> float:
    """Return what it costs beside what is taken: words that serve already, though a cue for a choice may be part of a
    value; and an order that is not the schema's.
    """
    cost = 0.0
    for at, index in zip(before, taken, strict=True):
        old = ranked[at].found[index]
        if old.span is None or new.span is None:
            cost += SKIPPED * _skips(ranked[at].parameter, parameter, old, new)
            continue
        if old.way == new.way == "part" and old.value != new.value:
            continue
        if old.span.first < new.span.last and new.span.first < old.span.last:
            light = {old.way, new.way} & {"yes", "no", "choice", "hinted"}
            cost += TWICE / 6 if light else TWICE
        elif old.span.kind == new.span.kind != "phrase" and ranked[at].parameter.type == parameter.type:
            cost += SWAPPED * ((old.span.first < new.span.first) != (ranked[at].parameter.order < parameter.order))
    return cost


def _skips(one: Parameter, other: Parameter, old: Candidate, new: Candidate) -> bool:
    """Whether what a required parameter might take goes to a later one of its type."""
    if one.type != other.type or not (one.required and other.required):
        return False
    earlier, later = (old, new) if one.order < other.order else (new, old)
    return earlier.way == "none" and later.way != "none"
