from dataclasses import dataclass
from typing import Any

import pytest

from packetgate.models.llama.grammar import LARGEST, SMALLEST, with_size_limits
from packetgate.models.schemas import map_schema, with_moved_references

INT: dict[str, Any] = {"type": "integer", "minimum": -LARGEST, "maximum": LARGEST}
NUMBER: dict[str, Any] = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST, "multipleOf": SMALLEST}
TEXT: dict[str, Any] = {"type": "string", "maxLength": 50}


def a(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def closed(**properties: Any) -> dict[str, Any]:
    return {**a(**properties), "additionalProperties": False}


@dataclass(frozen=True)
class Case:
    schema: Any
    result: Any


SAME = {
    "a number with limits": {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5},
    "exclusive limits": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 5},
    "texts with limits of their own": {"type": "string", "pattern": "^a+$"},
    "a format": {"type": "string", "format": "date"},
    "values in an enum": {"enum": [{"type": "string", "properties": {}}, {"$ref": "#/x"}]},
    "a value beyond the limits": {"type": "integer", "const": 10**30},
    "values beyond the limits": {"type": "array", "enum": [list(range(99))]},
    "an open object": {**a(), "additionalProperties": True},
    "properties by pattern": {**a(), "patternProperties": {"^x": {"type": "null"}}},
    "a property that is not listed": {**a(), "required": ["b"]},
    "no schema": "string",
    "rubbish": {"type": 5, "properties": [], "required": 3, "$defs": 1, "allOf": {}, "items": "x", "minItems": "y"},
    "rubbish among the names": {**a(), "required": [["a"], {}]},
}
CHANGED = {
    "an array": Case({"type": "array"}, {"type": "array", "maxItems": 5}),
    "a text": Case({"type": "string"}, TEXT),
    "whole numbers": Case({"type": "integer"}, INT),
    "numbers": Case({"type": "number"}, NUMBER),
    "one limit": Case({"type": "integer", "minimum": 3}, {**INT, "minimum": 3}),
    "an exclusive limit": Case(
        {"type": "integer", "exclusiveMinimum": 3}, {"type": "integer", "exclusiveMinimum": 3, "maximum": LARGEST}
    ),
    "several types": Case({"type": ["string", "integer"]}, {**INT, **TEXT, "type": ["string", "integer"]}),
    "an object": Case(a(x={"type": "string"}), closed(x=TEXT)),
    "an object without properties": Case(a(), closed()),
    "deep inside": Case(
        a(x={"type": "array", "maxItems": 2, "items": a(y={"anyOf": [{"type": "integer"}, {"type": "null"}]})}),
        closed(x={"type": "array", "maxItems": 2, "items": closed(y={"anyOf": [INT, {"type": "null"}]})}),
    ),
    "properties named like keywords": Case(
        a(**{name: {"type": "string"} for name in ("$ref", "properties", "type", "enum", "const", "allOf", "items")}),
        closed(**dict.fromkeys(("$ref", "properties", "type", "enum", "const", "allOf", "items"), TEXT)),
    ),
    "definitions": Case(
        {**a(x={"$ref": "#/$defs/X"}), "$defs": {"X": a()}},
        {**closed(x={"$ref": "#/$defs/X"}), "$defs": {"X": closed()}},
    ),
    "one reference alone": Case(
        {"allOf": [{"$ref": "#/$defs/X"}], "$defs": {"X": a()}},
        {"allOf": [{"$ref": "#/$defs/X"}], "$defs": {"X": closed()}},
    ),
    "ways to be": Case({"anyOf": [a(x={"type": "string"}), a()]}, {"anyOf": [closed(x=TEXT), closed()]}),
    "ways beside properties": Case(
        {**a(x={"type": "integer"}), "anyOf": [a(y={"type": "string"}), a()]},
        {**a(x=INT), "anyOf": [a(y=TEXT), a()]},
    ),
    "parts of one": Case({"allOf": [a(x={"type": "string"}), a()]}, {"allOf": [a(x=TEXT), a()]}),
    "a reference beside properties": Case(
        {**a(x={"type": "string"}), "$ref": "#/$defs/X", "$defs": {"X": a()}},
        {**a(x=TEXT), "$ref": "#/$defs/X", "$defs": {"X": a()}},
    ),
    "a condition": Case(
        {**a(x={"type": "string"}), "if": a(), "then": {"required": ["y"]}},
        {**a(x=TEXT), "if": a(), "then": {"required": ["y"]}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("schema", SAME.values(), ids=SAME)
def test_bounded_schemas_are_unchanged(schema: Any):
    assert with_size_limits(schema, items=5, characters=50) == schema


@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED)
def test_unbounded_schemas_get_limits(case: Case):
    before = repr(case.schema)
    assert with_size_limits(case.schema, items=5, characters=50) == case.result
    assert repr(case.schema) == before
    assert with_size_limits(case.result, items=5, characters=50) == case.result


REBASED = {
    "itself": Case({"$ref": "#"}, {"$ref": "#/$defs/t"}),
    "a definition": Case(
        {**a(x={"$ref": "#/$defs/X"}), "$defs": {"X": {"items": {"$ref": "#/$defs/X"}}}},
        {**a(x={"$ref": "#/$defs/t/$defs/X"}), "$defs": {"X": {"items": {"$ref": "#/$defs/t/$defs/X"}}}},
    ),
    "elsewhere": Case({"$ref": "https://example.org/x#/a"}, {"$ref": "https://example.org/x#/a"}),
    "a property of that name": Case(a(**{"$ref": {"$ref": "#"}}), a(**{"$ref": {"$ref": "#/$defs/t"}})),
    "data": Case({"const": {"$ref": "#"}}, {"const": {"$ref": "#"}}),
    "an address of its own": Case({"$id": "https://example.org/x", "$ref": "#/a"}, {"$ref": "#/$defs/t/a"}),
    "a property named so": Case(a(**{"$id": {}}), a(**{"$id": {}})),
    "no schema": Case(False, False),
    "no reference": Case({"$ref": 5}, {"$ref": 5}),
}


@pytest.mark.parametrize("case", REBASED.values(), ids=REBASED)
def test_references_are_moved(case: Case):
    assert with_moved_references(case.schema, "#/$defs/t") == case.result


def test_only_schemas_are_mapped():
    inner = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
    single = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
    listed = ("allOf", "anyOf", "oneOf", "prefixItems")
    schema = {
        **{key: {"name": {"seen": key}} for key in inner},
        **{key: {"seen": key} for key in single},
        **{key: [{"seen": key}] for key in listed},
        **{key: {"seen": key} for key in ("const", "default", "x-other")},
        "enum": [{"seen": "enum"}],
    }
    seen: list[str] = []

    def look(one: dict[str, Any]) -> dict[str, Any]:
        seen.append(one.get("seen", "whole"))
        return one

    assert map_schema(schema, look) == schema
    assert sorted(seen) == sorted([*inner, *single, *listed, "whole"])
    assert seen[-1] == "whole"
