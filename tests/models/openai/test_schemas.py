"""Which schemas OpenAI's strict mode takes, and in what form it gets them."""

import pytest

from packetgate.models.openai.schemas import shape_of, strict_schema
from packetgate.models.schemas import CONFIDENCE, obj, text

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
