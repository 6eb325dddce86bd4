"""The cases for the evaluation of models: each case can be passed, and is graded by its calls."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pytest

from packetgate.lab.cases import Case, RightCall, load_cases
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.checks.validation import check_call

CASES = load_cases().cases


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_right_calls_are_valid(case: Case):
    catalogue = Catalogue(load_cases().offered_tools(case))
    names = frozenset(catalogue)
    assert 3 <= len(names) <= 8
    made = [(case.earlier_call.tool, case.earlier_call.params)] if case.earlier_call else []
    for tool, params in [*made, *((call.tool, params) for call in case.calls for params in _ways(call))]:
        assert check_call(tool, params, names, catalogue) == []
    assert not (case.needs_question and case.calls)
    assert all(case.mark_calls([(call.tool, params) for call in case.calls for params in [next(_ways(call))]]))


def test_every_kind_has_cases():
    assert {case.kind for case in CASES} == load_cases().kinds.keys()
    assert len({case.request for case in CASES}) == len(CASES) == 80


@pytest.mark.parametrize(
    ("params", "right"),
    [
        ({"room": "Hall", "degrees": 18}, True),
        ({"room": "hall", "degrees": 18.0, "note": "now"}, True),
        ({"room": "hall", "degrees": 18, "path": "a/B.txt"}, True),
        ({"room": "hall", "degrees": 18, "path": "a/b.txt"}, False),
        ({"room": "hall", "degrees": True}, False),
        ({"room": "hall"}, False),
        ({"room": "hall", "degrees": 18, "other": 1}, False),
        ({"room": "the hall", "degrees": 18}, False),
    ],
)
def test_arguments_are_compared_with_the_right_ones(params: dict[str, Any], right: bool):
    wanted = RightCall(
        tool="home.heat", args={"room": ["hall"], "degrees": [18]}, optional_args={"note": [], "path": ["a/B.txt"]}
    )
    assert wanted.matches("home.heat", params) is right
    assert not wanted.matches("home.cool", params)


def test_a_repeated_call_is_wrong():
    one, two = RightCall(tool="a.b", args={"n": [1]}), RightCall(tool="a.b", args={"n": [2]})
    case = Case(name="c", kind="several", request="1 and 2", tools=("a",), calls=(one, two))
    assert case.mark_calls([("a.b", {"n": 2}), ("a.b", {"n": 2}), ("a.b", {"n": 1})]) == [True, False, True]


def _ways(call: RightCall) -> Iterator[dict[str, Any]]:
    """Yield arguments that together contain every accepted value."""
    known = {name: values or ["anything"] for name, values in {**call.args, **call.optional_args}.items()}
    for values in zip_longest(*known.values()):
        yield {name: known[name][0] if value is None else value for name, value in zip(known, values, strict=True)}
