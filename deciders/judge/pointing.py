"""From scores of beginnings and ends to words: no two parameters take the same ones."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from deciders.judge.judgement import Slot

LONGEST = 40
"""Tokens that one value may span."""
CANDIDATES = 6
"""Spans considered for a parameter."""

Scores = np.ndarray[Any, np.dtype[np.float32]]


class Span(NamedTuple):
    """Some words of the request, by token, and how likely they fill a parameter."""

    begin: int
    end: int
    probability: float


class Pointed(NamedTuple):
    """What the encoder says of one parameter."""

    nothing: float
    """Probability that no words fill it."""
    spans: tuple[Span, ...]
    """Best first."""


def pointed(begin: Scores, end: Scores) -> Pointed:
    """Read the scores of one parameter; token 0 stands for no words, the others for the request's."""
    first, last = _softmax(begin), _softmax(end)
    both = np.triu(np.outer(first[1:], last[1:]))
    both = np.tril(both, LONGEST - 1)
    nothing = float(first[0] * last[0])
    total = nothing + float(both.sum()) or 1.0
    best = np.argsort(-both, axis=None)[:CANDIDATES]
    spans = [Span(int(at // both.shape[1]), int(at % both.shape[1]), float(both.flat[at] / total)) for at in best]
    return Pointed(nothing / total, tuple(spans))


def slots(
    request: str,
    offsets: Sequence[tuple[int, int]],
    found: Mapping[str, Pointed],
    required: Sequence[str],
    names: Sequence[str],
) -> tuple[Slot, ...]:
    """Return a slot a parameter: the surest takes its words first."""
    taken: set[int] = set()
    filled: dict[str, Slot] = {}
    for name in sorted(found, key=lambda name: found[name].nothing):
        span = _free(found[name], taken)
        if span is not None:
            taken.update(range(span.begin, span.end + 1))
            start, stop = offsets[span.begin][0], offsets[span.end][1]
            filled[name] = Slot(name, "filled", request[start:stop], start, stop, span.probability)
    return tuple(filled.get(name) or _unfilled(name, found.get(name), name in required) for name in names)


def _free(pointed: Pointed, taken: set[int]) -> Span | None:
    """Return the best span whose words nothing else has taken; None where no words are likelier."""
    if pointed.nothing > 0.5:
        return None
    free = (one for one in pointed.spans if taken.isdisjoint(range(one.begin, one.end + 1)))
    best = next(free, None)
    return best if best and best.probability > pointed.nothing / 2 else None


def _unfilled(name: str, pointed: Pointed | None, required: bool) -> Slot:
    return Slot(name, "missing" if required else "default", "", 0, 0, pointed.nothing if pointed else 0.5)


def _softmax(scores: Scores) -> Scores:
    powers = np.exp(scores - scores.max())
    shares: Scores = powers / powers.sum()
    return shares
