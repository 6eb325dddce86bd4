"""Schemas of other dialects: a fitting call is accepted, and a usable keyword refuses other calls."""

import json
from typing import Any

import pytest
from support.tool_specs import a_tool

from packetgate.tools.checks.dialects import normalize_schema
from packetgate.tools.checks.validation import check_params, portable_pattern, schema_error

NOTHING: Any = object()
TEXT = {"type": "string"}
"""No call is refused."""


def of(v: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": v}, **more}


DRAFT_4, DRAFT_7 = "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"
PET = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}

ROWS: list[tuple[Any, Any, Any]] = [
    (None, {}, NOTHING),
    ([], {}, {"x": 1}),
    (True, {"any": "thing"}, NOTHING),
    ({"properties": {"v": TEXT}, "required": ["v"]}, {"v": "x"}, {}),
    ({"type": ["object", "null"], "properties": {}}, {}, {"x": 1}),
    (of(None), {"v": 1}, NOTHING),
    # types
    (of({"type": "STRING"}), {"v": "x"}, {"v": 1}),
    (of({"type": "float"}), {"v": 1.5}, {"v": "x"}),
    (of({"type": "list", "items": {"type": "str"}}), {"v": ["x"]}, {"v": [1]}),
    (of({"type": "any"}), {"v": [1]}, NOTHING),
    (of({"type": "file"}), {"v": "x"}, NOTHING),
    (of({"type": "string|null"}), {"v": None}, {"v": 1}),
    (of({**TEXT, "nullable": True, "enum": ["a"]}), {"v": None}, {"v": "b"}),
    (of({"allOf": [{"$ref": "#/$defs/P"}], "nullable": True}, **{"$defs": {"P": PET}}), {"v": None}, {"v": {}}),
    # required
    (of({**TEXT, "required": True}), {"v": "x"}, {}),
    (of(TEXT, required="v"), {"v": "x"}, {}),
    (of(TEXT, required={}), {}, {"v": 1}),
    (of(TEXT, required=None), {}, {"v": 1}),
    (of(TEXT, required=["w"]), {"w": 1}, {}),
    # bounds
    (of({"type": "number", "minimum": 0, "exclusiveMinimum": True}), {"v": 1}, {"v": 0}),
    (of({"type": "number", "minimum": 0, "exclusiveMinimum": False}), {"v": 0}, {"v": -1}),
    (of({"type": "integer", "minimum": "1"}), {"v": 1}, {"v": 0}),
    (of({**TEXT, "maxLength": 3.0, "minLength": -1}), {"v": "abc"}, {"v": "abcd"}),
    (of({"type": "number", "multipleOf": 0, "maximum": float("inf")}), {"v": 11}, {"v": "x"}),
    # lists of values
    (of({"enum": ["a", "a"]}), {"v": "a"}, {"v": "b"}),
    (of({**TEXT, "enum": None}), {"v": "x"}, {"v": 1}),
    (of({**TEXT, "enum": []}), {"v": "x"}, {"v": 1}),
    (of({"type": "INTEGER", "enum": ["1", "2"]}), {"v": "1"}, {"v": "3"}),
    (of({"type": "array", "items": TEXT, "enum": ["a", "b"]}), {"v": ["a"]}, {"v": ["c"]}),
    # arrays and objects
    (of({"type": "array", "items": False}), {"v": []}, {"v": [1]}),
    (of({"type": "array", "items": None}), {"v": [1]}, {"v": 1}),
    (
        of({"type": "array", "items": [TEXT], "additionalItems": {"type": "integer"}}),
        {"v": ["a", 1]},
        {"v": ["a", "b"]},
    ),
    (of(TEXT, additionalProperties="false"), {"v": "x"}, {"w": 1}),
    ({"patternProperties": {r"^[\w-.]+$": {"type": "integer"}}, "additionalProperties": False}, {"a-b": 1}, {"a": "x"}),
    ({"patternProperties": {"^(": {"type": "integer"}}, "additionalProperties": False}, {"a": "x"}, NOTHING),
    (of({"anyOf": []}), {"v": 1}, NOTHING),
    (of({"anyOf": TEXT}), {"v": "x"}, {"v": 1}),
    (of({**TEXT, "description": ["a", "b"], "title": None, "format": None, "default": None}), {"v": "x"}, {"v": 1}),
    # references
    (of({"$ref": "#/definitions/P"}, **{"$defs": {"P": PET}}), {"v": {"name": "x"}}, {"v": {}}),
    (of({"$ref": "#/$defs/P", "$defs": {"P": PET}}), {"v": {"name": "x"}}, {"v": {}}),
    (of({"$ref": "#/components/schemas/P"}, components={"schemas": {"P": PET}}), {"v": {"name": "x"}}, {"v": {}}),
    (of({"$ref": "#/components/schemas/P"}), {"v": 1}, NOTHING),
    (of({"$ref": "P"}, definitions={"P": PET}), {"v": {"name": "x"}}, {"v": {}}),
    (of({"$ref": "#/$defs/a~1b"}, **{"$defs": {"a/b": TEXT}}), {"v": "x"}, {"v": 1}),
    (of({"$ref": "https://example.org/s.json"}), {"v": 1}, NOTHING),
    (of({"$ref": "#p"}, **{"$defs": {"P": {**PET, "$anchor": "p"}}}), {"v": {"name": "x"}}, NOTHING),
    ({"$ref": "#/definitions/A", "definitions": {"A": of(TEXT, required=["v"])}}, {"v": "x"}, {}),
    (
        of({"$ref": "o#/$defs/x"}, **{"$id": "https://e.org/r", "$defs": {"o": {"$id": "o", "$defs": {"x": TEXT}}}}),
        {"v": "x"},
        NOTHING,
    ),
    # omitted keywords accept more values, at any place
    (of({"not": {"pattern": "("}}), {"v": "x"}, NOTHING),
    (of({"if": {"$ref": "#/gone"}, "then": False, "else": {"type": "string"}}), {"v": 1}, NOTHING),
    (of({"oneOf": [{"type": "money"}, TEXT], "anyOf": [TEXT, {"type": "integer"}]}), {"v": "x"}, {"v": []}),
    (of({"oneOf": [{"$ref": "#/gone"}, TEXT]}), {"v": "x"}, NOTHING),
    # recursive references
    (of({"$ref": "#/properties/v"}), {"v": 1}, NOTHING),
    (of(TEXT, anyOf=[{"$ref": "#"}], unevaluatedProperties=False), {"v": "x"}, {"v": 1}),
    (of(TEXT, dependentSchemas={"v": {"$ref": "#"}}, unevaluatedProperties=False), {"v": "x"}, {"v": 1}),
    (of({"$id": "#/properties/v", **TEXT}), {"v": "x"}, {"v": 1}),
    (
        of({"$ref": "#/definitions/s", "minLength": 2}, **{"$schema": DRAFT_7, "definitions": {"s": TEXT}}),
        {"v": "xx"},
        {"v": 1},
    ),
    (of(TEXT, **{"$schema": DRAFT_4, "id": "http://example.org/x"}), {"v": "x"}, {"v": 1}),
    (of(TEXT, **{"$schema": ""}), {"v": "x"}, {"v": 1}),
    (of(TEXT, **{"$schema": "https://example.org/mine"}), {"v": "x"}, {"v": 1}),
]


@pytest.mark.parametrize(("schema", "fits", "does_not"), ROWS, ids=[json.dumps(row[0])[:70] for row in ROWS])
def test_schemas_of_other_dialects_are_normalised(schema: Any, fits: dict[str, Any], does_not: Any):
    read, _ = normalize_schema(schema)
    assert isinstance(read, dict)
    assert schema_error(read) == ""
    spec = a_tool("a.b", schema=read)
    assert check_params(spec, fits) == []
    assert does_not is NOTHING or check_params(spec, does_not)
    assert spec.signature()
    assert normalize_schema(read) == (read, [])


@pytest.mark.parametrize(
    ("schema", "changes"),
    [
        (of({**TEXT, "pattern": "^(?<!a+b|c*)("}), ["v: pattern left out ('^(?<!a+b|c*)(')"]),
        (of({"type": "object", "properties": {"w": {"type": "money"}}}), ['v.w: type left out ("money")']),
        (of({"type": "array", "items": {"minLength": {}}}), ["v[]: minLength left out ({})"]),
        (of({"$ref": "#/$defs/gone"}), ["v: $ref left out ('#/$defs/gone' has no target)"]),
        (of({"type": "integer", "enum": ["1"]}), ["v: type left out (none of its values is of type integer)"]),
        (of({"$ref": "#/properties/v"}), ["v: $ref left out ('#/properties/v' refers to itself)"]),
        (
            of({"$ref": "#/$defs/x"}) | {"$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}},
            [
                "v: $ref left out ('#/$defs/x' refers to itself)",
                "x: $ref left out ('#/$defs/y' refers to itself)",
                "y: $ref left out ('#/$defs/x' refers to itself)",
            ],
        ),
        (5, ["the input schema is not a JSON object: any arguments are accepted"]),
    ],
)
def test_left_out_keywords_are_reported_with_their_place(schema: Any, changes: list[str]):
    assert normalize_schema(schema)[1] == changes


def test_a_good_schema_is_unchanged():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": []}
    schema = of({"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}], "default": None}, **{"$defs": {"node": node}})
    assert normalize_schema(schema) == (schema, [])


PATTERNS = [
    (r"^(?<y>\d{4})$", "2020", "20"),
    (r"^https?:\/\/", "http://", "ftp://"),
    (r"^[\w-.]+$", "a-b.c", "a b"),
    (r"^[a-\d]$", "-", "b"),
    (r"^\u{1F600}$", "\U0001f600", "x"),
    (r"^\p{L}+$", "\u00e9", "1"),
    (r"^(?!-)[a-z-]{1,}$", "a-", "-a"),
]
UNUSED = "( [ \\ ^[[:alpha:]]+$ ^[a-z&&[^b]]$ a{,3} /abc/i /^abc$/ ^\\uD83D\\uDE00$ ^[^]{2}$ \\Aa\\Z ^{{.*}}$".split()


@pytest.mark.parametrize(("pattern", "fits", "does_not"), PATTERNS)
def test_patterns_have_their_meaning_in_javascript(pattern: str, fits: str, does_not: str):
    spec = a_tool("a.b", schema=normalize_schema(of({**TEXT, "pattern": pattern}))[0])
    assert check_params(spec, {"v": fits}) == []
    assert check_params(spec, {"v": does_not})


@pytest.mark.parametrize("pattern", UNUSED)
def test_an_unportable_pattern_is_not_used(pattern: str):
    assert portable_pattern(pattern) is None
