"""Values of a wrong type are converted without loss, or stay unchanged."""

from dataclasses import dataclass
from typing import Any

import pytest
from support.tool_specs import a_tool

from packetgate.tools.checks.validation import MAX_ERRORS, check_params, coerce_params

INTEGER, NUMBER, STRING, BOOLEAN = ({"type": kind} for kind in ("integer", "number", "string", "boolean"))


def listed(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def holding(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


@dataclass(frozen=True)
class Case:
    schema: dict[str, Any]
    given: Any
    expected: Any


CONVERTED = [
    Case(INTEGER, "5", 5),
    Case(INTEGER, "-5", -5),
    Case(INTEGER, "5.0", 5),
    Case(INTEGER, "1234567890123456789", 1234567890123456789),
    Case(NUMBER, "2.5", 2.5),
    Case(NUMBER, "5", 5),
    Case(BOOLEAN, "true", True),
    Case(BOOLEAN, "False", False),
    Case(STRING, 5, "5"),
    Case(STRING, 2.5, "2.5"),
    Case(listed(STRING), "x", ["x"]),
    Case(listed(STRING), 5, ["5"]),
    Case(listed(INTEGER), "5", [5]),
    Case(listed(INTEGER), "[1, 2]", [1, 2]),
    Case(listed(INTEGER), '["1", "2"]', [1, 2]),
    Case(listed(INTEGER), ["1", 2], [1, 2]),
    Case(listed(STRING), "[1, 2]", ["1", "2"]),
    Case(listed(STRING), "['a', 'b',]", ["a", "b"]),
    Case(listed(holding(n=INTEGER)), {"n": "3"}, [{"n": 3}]),
    Case(listed(INTEGER), ["1"] * MAX_ERRORS, [1] * MAX_ERRORS),
    Case(holding(n=INTEGER), '{"n": 5}', {"n": 5}),
    Case(holding(n=INTEGER), "{n: 5} // five", {"n": 5}),
    Case(holding(n=INTEGER, s=STRING), {"n": "5", "s": 7}, {"n": 5, "s": "7"}),
    Case({"enum": ["Celsius", "Fahrenheit"]}, "celsius", "Celsius"),
    Case({"type": "string", "enum": ["true", "false"]}, True, "true"),
    Case({"enum": [1, 2]}, "2", 2),
    Case({"const": 5}, "5", 5),
    Case(optional(INTEGER), "5", 5),
    Case(optional({"enum": ["Open"]}), "OPEN", "Open"),
    Case(optional(listed(INTEGER)), "5", [5]),
    Case(optional(listed(INTEGER)), ["5", "6"], [5, 6]),
    Case(optional(holding(n=optional(INTEGER))), {"n": "5"}, {"n": 5}),
    Case(
        optional(holding(b=optional(holding(n=INTEGER)), m=INTEGER)),
        {"b": {"n": "1"}, "m": "2"},
        {"b": {"n": 1}, "m": 2},
    ),
    Case({"oneOf": [INTEGER, BOOLEAN]}, "true", True),
    Case({"$ref": "#/$defs/size"}, "5", 5),
    Case({"anyOf": [{"$ref": "#/$defs/size"}, {"$ref": "#/$defs/point"}]}, {"x": "5", "y": 6}, {"x": 5, "y": 6}),
]

UNCHANGED = [
    Case(INTEGER, value, value)
    for value in (
        *("5.7", "five", "", " ", " 5", "007", "+5", "1e3", "0x10", "\u0665", "9" * 40, "NaN"),
        *(5.7, True, None, [5], {"n": 5}, 2**70),
    )
] + [
    Case(BOOLEAN, value, value) for value in ("yes", "on", "1", 1, 0, "", None)
] + [
    Case(STRING, value, value) for value in (True, None, ["x"], {"x": 1})
] + [
    Case(NUMBER, "0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
    Case(NUMBER, "Infinity", "Infinity"),
    Case({"type": "integer", "minimum": 10}, "5", "5"),
    Case({"enum": ["aa", "AA"]}, "Aa", "Aa"),
    Case({"enum": ["open"]}, "opened", "opened"),
    Case(listed(INTEGER), ["1", "x"], ["1", "x"]),
    Case(listed(INTEGER), "x", "x"),
    Case(listed(INTEGER), None, None),
    Case(listed(INTEGER), ["1"] * (MAX_ERRORS + 1), ["1"] * (MAX_ERRORS + 1)),
    Case(holding(n=INTEGER), '{"n": 5, "n": 6}', '{"n": 5, "n": 6}'),
    Case(holding(n=INTEGER), '{"n": NaN}', '{"n": NaN}'),
    Case(holding(n=INTEGER), "[" * 100_000, "[" * 100_000),
    *(Case(listed(STRING), text, text) for text in ("[x", "[x, y]", '["x"', "['it''s']", '{"x": 1, "x": 2}')),
    Case({"type": "strin"}, "5", "5"),
    Case({"$ref": "#/$defs/gone"}, "5", "5"),
]  # fmt: skip

VALID = [
    Case(schema, value, value)
    for schema, value in (
        (INTEGER, 5.0),
        (STRING, "5"),
        (STRING, "true"),
        (STRING, "[1]"),
        (optional(STRING), None),
        ({"anyOf": [INTEGER, STRING]}, "5"),
        ({"enum": ["a", "A"]}, "a"),
        (listed(STRING), ["1"]),
        ({}, "5"),
    )
]


def tool(schema: dict[str, Any]):
    point = {**holding(x=INTEGER, y=INTEGER), "required": ["x", "y"]}
    schema_ = {"type": "object", "properties": {"given": schema}, "$defs": {"size": INTEGER, "point": point}}
    return a_tool("a.b", schema=schema_)


@pytest.mark.parametrize("case", CONVERTED, ids=str)
def test_values_are_converted_to_the_type_of_the_schema(case: Case):
    assert check_params(tool(case.schema), {"given": case.given})
    params = coerce_params(tool(case.schema), {"given": case.given})
    assert (params, type(params["given"])) == ({"given": case.expected}, type(case.expected))
    assert check_params(tool(case.schema), params) == []


@pytest.mark.parametrize("case", UNCHANGED, ids=lambda case: str(case)[:80])
def test_ambiguous_values_are_unchanged(case: Case):
    assert coerce_params(tool(case.schema), {"given": case.given})["given"] is case.given
    assert check_params(tool(case.schema), {"given": case.given})


@pytest.mark.parametrize("case", VALID, ids=str)
def test_a_valid_value_is_unchanged(case: Case):
    assert check_params(tool(case.schema), {"given": case.given}) == []
    assert coerce_params(tool(case.schema), {"given": case.given})["given"] is case.given


def test_parameters_are_independent_and_not_modified_in_place():
    spec = a_tool("a.b", n=INTEGER, m=INTEGER)
    assert coerce_params(spec, {"n": "5", "m": "x", "other": "5"}) == {"n": 5, "m": "x", "other": "5"}
    given = {"p": {"n": ["1"]}}
    assert coerce_params(a_tool("a.b", p=holding(n=listed(INTEGER))), given) == {"p": {"n": [1]}}
    assert given == {"p": {"n": ["1"]}}
