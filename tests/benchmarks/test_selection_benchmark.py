"""The benchmark of selection: its input, and the calls that count as right."""

from typing import Any

import pytest

from benchmarks.selection.cases import Case
from benchmarks.selection.figures import Call, Outcome, is_right, summary

TAKES = {"city": {"type": "string"}, "days": {"type": "integer"}}
FORECAST = {
    "name": "forecast",
    "description": "Weather of the coming days.",
    "parameters": {"type": "dict", "properties": TAKES, "required": ["city"]},
}


def case(**values: Any) -> Case:
    return Case.model_validate({"id": "1", "query": "?", "tools": [FORECAST], **values})


def wants(**arguments: Any) -> Case:
    return case(expected=[{"name": "forecast", "arguments": arguments}])


def called(confidence: float = 0.9, /, **arguments: Any) -> Outcome:
    calls = (Call(name="forecast", arguments=arguments),)
    return Outcome(id="1", action="call", calls=calls, relevance=0.8, confidence=confidence)


NOTHING = Outcome(id="1", action="none", relevance=0.1)


def test_a_call_is_right_with_any_accepted_value():
    asked = wants(city=["Oslo", "oslo, norway"], days=[3, ""])
    assert is_right(asked, called(city="Oslo"))
    assert is_right(asked, called(city="Oslo, Norway", days=3))
    assert not is_right(asked, called(city="Oslo", days=4))
    assert not is_right(asked, called(days=3))
    assert not is_right(asked, called(city="Oslo", unit="C"))
    assert not is_right(case(), called(city="Oslo"))


def test_figures_match_a_count_by_hand():
    cases = [wants(city=["Oslo"]), wants(city=["Rome"]), case(), case()]
    came = [called(0.9, city="Oslo"), called(0.8, city="Oslo"), NOTHING, called(0.2, city="Oslo")]
    figures = summary(cases, came)
    assert (figures["exact_match"], figures["tool_accuracy"]) == (0.5, 1.0)
    assert (figures["called_where_none_serves"], figures["gate_precision"], figures["gate_coverage"]) == (0.5, 0.5, 0.5)
    assert figures["relevance_auroc"] == 0.75
    assert (figures["right_kind"], figures["wanted_of_passed_calls"], figures["asked_of_wanted_calls"]) == (0.75, 1, 0)
    assert figures["ece"] == pytest.approx((0.1 + 0.8 + 0.2) / 3)


def test_a_question_is_the_right_kind_only_where_something_is_missing():
    missing = wants(city=["Oslo"]).model_copy(update={"asks": True})
    question = NOTHING.model_copy(update={"action": "clarify"})
    figures = summary([missing, missing, wants(city=["Oslo"])], [question, called(0.9, city="Oslo"), question])
    assert (figures["right_kind"], figures["wanted_of_passed_calls"]) == (pytest.approx(1 / 3), 0)
    assert figures["asked_of_wanted_calls"] is None
