"""Which schemas OpenAI's strict mode takes, and in what form it gets them."""

import pytest
from jsonschema_rs import validator_for

from packetgate.models.forms import CONFIDENCE, obj, text
from packetgate.models.openai.schemas import grouped, one_object, shape_of, strict_schema

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        obj(a=text(3), b=CONFIDENCE),
        obj(a={"enum": ["x", 1]}, b={"const": True}, c=obj(d=TEXT)),
        obj(a={"type": "array", "items": obj(b=TEXT), "minItems": 2, "maxItems": 3}),
        obj(a={"anyOf": [obj(b=TEXT), {"type": "null"}]}),
        {**obj(a={"$ref": "#/$defs/one"}), "$defs": {"one": obj(maxLength=text(2))}},
    ],
)
def test_strict(schema):
    strict = strict_schema(schema)
    assert strict == shape_of(schema)
    assert strict is not None
    assert "maxLength" not in strict["properties"].get("a", {})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
        {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
        {"type": "object", "properties": {"a": TEXT}, "required": 7, "additionalProperties": False},
        {"anyOf": [obj(a=TEXT)]},
        {"type": "array", "items": TEXT},
        obj(a={}),
        obj(a=True),
        obj(a={"type": "array"}),
        obj(a={"type": "object", "additionalProperties": TEXT}),
        obj(a={"not": TEXT}),
        obj(a={"allOf": [TEXT]}),
        obj(a={"type": "array", "items": {"type": "object"}}),
        {**obj(a={"$ref": "#/$defs/one"}), "$defs": {"one": {"type": "object", "properties": {"b": TEXT}}}},
    ],
)
def test_not_strict(schema):
    assert strict_schema(schema) is None


def test_alternatives_in_one_object():
    none = obj(action={"const": "none"}, reason=TEXT)
    call = obj(action={"const": "call"}, calls={"type": "array", "items": {"$ref": "#/$defs/one"}}, reason=TEXT)
    schema = {"anyOf": [call, none], "$defs": {"one": TEXT}}
    merged = one_object(schema)
    assert list(merged["properties"]) == ["action", "calls", "reason"]
    assert merged["required"] == ["action", "reason"]
    for value in ({"action": "none", "reason": ""}, {"action": "call", "calls": ["x"], "reason": ""}):
        assert validator_for(schema).is_valid(value)
        assert validator_for(merged).is_valid(value)
    for value in (
        {"action": "other", "reason": ""},
        {"action": "call", "calls": [1], "reason": ""},
        {"action": "none"},
    ):
        assert not validator_for(merged).is_valid(value)
    assert one_object(none) is none


def test_alternatives_that_differ_in_one_constant_are_one():
    three = [obj(tool={"const": name}, params={"type": "object"}) for name in "abc"]
    other, free = obj(tool={"const": "d"}, params=TEXT), obj(question=TEXT)
    listed = {"type": "array", "items": {"anyOf": [*three, other, free]}}
    merged = grouped(obj(calls=listed))["properties"]["calls"]["items"]["anyOf"]
    assert merged == [obj(tool={"enum": ["a", "b", "c"]}, params={"type": "object"}), other, free]


def test_alternatives_with_several_constants_stay_apart():
    pairs = {"anyOf": [obj(a={"const": 1}, b={"const": 2}), obj(a={"const": 2}, b={"const": 1})]}
    assert grouped(obj(pair=pairs)) == obj(pair=pairs)
