"""The short form of a schema is lossless, or is the schema itself."""

from typing import Any

import pytest

from packetgate.state.printing import compact_json
from packetgate.tools.spec.short_schemas import short_schema

TEXT = {"type": "string"}


def object_of(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("schema", "short"),
    [
        ({"type": "object"}, "{}"),
        (object_of("path", path=TEXT, lines={"type": "integer"}), "{path: string, lines?: integer}"),
        (object_of("path", "more", path={"title": "Path", **TEXT}), "{path: string, more: any}"),
        ({"properties": {"a": TEXT}, "title": "A", "$schema": "x"}, "{a?: string}"),
        ({**object_of(a=TEXT), "additionalProperties": True}, "{a?: string, [name]: any}"),
        ({**object_of(a=TEXT), "additionalProperties": False}, "{a?: string}"),
        (object_of(**{"last-name": TEXT}), '{"last-name"?: string}'),
        (object_of(a={"type": ["string", "null"], "default": None}), "{a?: string | null}"),
        (object_of(a={"anyOf": [TEXT, {"type": "null"}]}), "{a?: string | null}"),
        (object_of(a={"enum": ["x", 1, None]}), '{a?: "x" | 1 | null}'),
        (object_of(a={"const": "x"}), '{a?: "x"}'),
        (object_of(a={}, b=True), "{a?: any, b?: any}"),
        (object_of(a={"type": "array", "items": TEXT}), "{a?: string[]}"),
        (object_of(a={"type": "array", "items": {"type": ["string", "null"]}}), "{a?: (string | null)[]}"),
        (object_of(a={"type": "array"}), "{a?: any[]}"),
        (object_of(a={"type": "object"}), "{a?: {[name]: any}}"),
        (object_of(a={"type": "object", "additionalProperties": TEXT}), "{a?: {[name]: string}}"),
        (object_of(a=object_of("b", b=TEXT)), "{a?: {b: string}}"),
        ({**object_of(a={"$ref": "#/$defs/b"}), "$defs": {"b": object_of("c", c=TEXT)}}, "{a?: {c: string}}"),
        (
            object_of(a={**TEXT, "description": "Which\n  one.", "default": "x", "maxLength": 9}),
            '{a?: string (Which one.; default: "x"; characters at most: 9)}',
        ),
        (
            object_of(a={"type": "integer", "minimum": 0, "exclusiveMaximum": 5}),
            "{a?: integer (at least: 0; below: 5)}",
        ),
        (object_of(a={"type": "array", "items": TEXT, "uniqueItems": True}), "{a?: string[] (unique: true)}"),
        ({"type": "object", "description": "天気 é"}, "{} (天気 é)"),
    ],
)
def test_schemas_have_a_short_form(schema: dict[str, Any], short: str):
    assert short_schema(schema) == short


TREE = {"type": "object", "properties": {"below": {"$ref": "#/$defs/tree"}}}
WIDE = {"type": "object", "properties": {f"p{at}": {"$ref": "#/$defs/tree"} for at in range(99)}}


@pytest.mark.parametrize(
    "rich",
    [
        object_of(a={"not": TEXT}),
        object_of(a={"allOf": [TEXT, {"minLength": 1}]}),
        object_of(a={**TEXT, "anyOf": [{"format": "ipv4"}]}),
        object_of(a={"type": "array", "prefixItems": [TEXT]}),
        object_of(a={"$ref": "#/properties/b"}, b=TEXT),
        object_of(a={"type": {"odd": 1}}),
        object_of(a={"type": ["string", ["x"]]}),
        object_of(a=7),
        {"type": "object", "properties": [1]},
        {"type": "object", "required": "a"},
        {**object_of(), "patternProperties": {"^x": TEXT}},
        {"$ref": "#/$defs/tree", "$defs": {"tree": TREE}},
        {"$ref": "#/$defs/tree", "$defs": {"tree": WIDE}},
    ],
)
def test_an_unsupported_schema_is_unchanged(rich: dict[str, Any]):
    assert short_schema(rich) == compact_json(rich)
