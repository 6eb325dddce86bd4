"""Compute the metrics of selected calls: correctness, and the calibration of their confidence."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from benchmarks.selection.cases import Case, Expected
from packetgate.lab.fitting import calibration_error, reliability

GATE = 0.7
_IGNORED = re.compile(r"[ ,./\-_*^]")

Figures = dict[str, float | int | None]


class Call(BaseModel):
    """A selected call."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: dict[str, JsonValue]


class Outcome(BaseModel):
    """The outcome of one case."""

    model_config = ConfigDict(frozen=True)

    id: str
    action: Literal["call", "none", "clarify", "describe"]
    calls: tuple[Call, ...] = ()
    relevance: float
    """Confidence that a tool fits the request."""
    confidence: float = 0.0
    """Lowest confidence that a call is right, which the gate reads."""


def summary(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> Figures:
    """Return the metrics of a set; None for a metric without cases."""
    pairs = list(zip(cases, outcomes, strict=True))
    wanted = [(case, one) for case, one in pairs if case.expected and not case.asks]
    asking = [one for case, one in pairs if case.asks]
    unserved = [one for case, one in pairs if not case.expected]
    judged = [(case, one) for case, one in wanted if all(call.arguments is not None for call in case.expected)]
    called = [(one.confidence, is_right(case, one)) for case, one in pairs if one.action == "call" and _judged(case)]
    passed = [right for confidence, right in called if confidence >= GATE]
    kinds = [(one, is_right_kind(case, one)) for case, one in pairs]
    of_calls = [(one.confidence >= GATE, right) for one, right in kinds if one.action == "call"]
    return {
        "cases": len(pairs),
        "relevance_auroc": auroc(
            [one.relevance for case, one in pairs if case.expected], [one.relevance for one in unserved]
        ),
        "right_kind": _mean(right for _, right in kinds),
        "wanted_of_passed_calls": _mean(right for passes, right in of_calls if passes),
        "asked_of_wanted_calls": _mean(not passes for passes, right in of_calls if right),
        "tool_accuracy": _mean(names_right(case, one) for case, one in wanted),
        "exact_match": _mean(is_right(case, one) for case, one in judged),
        "asked_where_something_is_missing": _mean(one.action == "clarify" for one in asking),
        "called_where_none_serves": _mean(one.action == "call" for one in unserved),
        "ece": calibration_error(reliability(called)) if called else None,
        "gate_precision": _mean(passed),
        "gate_coverage": len(passed) / sum(map(_judged, cases)) if any(map(_judged, cases)) else None,
    }


def names_right(case: Case, outcome: Outcome) -> bool:
    """Return whether exactly the right tools were called."""
    return sorted(call.name for call in outcome.calls) == sorted(call.name for call in case.expected)


def is_right_kind(case: Case, outcome: Outcome) -> bool:
    """Return whether the outcome is right: the right tool, a question about a missing argument, or no call."""
    if not case.expected:
        return outcome.action == "none"
    return outcome.action == "clarify" if case.asks else names_right(case, outcome)


def is_right(case: Case, outcome: Outcome) -> bool:
    """Return whether exactly the right calls were made, with accepted arguments."""
    left = list(outcome.calls)
    for expected in case.expected:
        fitting = next((call for call in left if call.name == expected.name and _will_do(call, expected)), None)
        if fitting is None:
            return False
        left.remove(fitting)
    return not left and bool(case.expected) and not case.asks


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """Return how often a request with a fitting tool scores higher than one without; None unless both kinds occur."""
    if not positive or not negative:
        return None
    order = sorted(negative)
    wins = 0.0
    for score in positive:
        wins += (_below(order, score) + _below(order, score, including=True)) / 2
    return wins / (len(positive) * len(negative))


def _judged(case: Case) -> bool:
    """Whether the labels determine if the call is right."""
    return not case.expected or case.asks or all(call.arguments is not None for call in case.expected)


def _will_do(call: Call, expected: Expected) -> bool:
    allowed = expected.arguments or {}
    if not call.arguments.keys() <= allowed.keys():
        return False
    return all(
        any(same(call.arguments[name], value) for value in values) if name in call.arguments else "" in values
        for name, values in allowed.items()
    )


def same(given: Any, allowed: Any) -> bool:
    """Return whether two values are equal, ignoring case and punctuation; in objects, a list allows each item."""
    if isinstance(given, bool) or isinstance(allowed, bool):
        return given is allowed
    if isinstance(given, int | float) and isinstance(allowed, int | float):
        return given == allowed
    if isinstance(given, str) and isinstance(allowed, str):
        return _plain(given) == _plain(allowed)
    if isinstance(given, list) and isinstance(allowed, list):
        return len(given) == len(allowed) and all(map(same, given, allowed))
    if isinstance(given, Mapping) and isinstance(allowed, Mapping):
        return given.keys() <= allowed.keys() and all(_allows(given, name, values) for name, values in allowed.items())
    return given is None and allowed is None


def _allows(given: Mapping[str, Any], name: str, values: Any) -> bool:
    many = values if isinstance(values, list) else [values]
    return any(same(given[name], value) for value in [*many, values]) if name in given else "" in many


def _plain(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')


def _mean(values: Iterable[bool]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None


def _below(order: Sequence[float], score: float, *, including: bool = False) -> int:
    return (bisect_right if including else bisect_left)(order, score)
