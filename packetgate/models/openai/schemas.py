"""The JSON Schemas that OpenAI enforces, and those that any server can enforce."""

from typing import Any

from packetgate.models.calling import OfferedTool
from packetgate.models.schemas import Schema, map_schema, without

_LIMITS = frozenset(
    {"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "examples"}
)
"""Keywords that limit values: servers refuse some of them, or ignore them."""

MODEST, MODEST_ITEMS = 300, 30
"""Longest text, in characters, and longest array that a server is asked to count."""

DESCRIPTION_CHARS = 1_024
"""OpenAI's limit."""

_OUTERMOST = frozenset({"type", "properties", "required", "additionalProperties", "$defs", "definitions"})
"""Keywords that OpenAI accepts at the root of a tool's schema."""

_SHAPES = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"}
    | {"title", "description"}
)
"""The other keywords that OpenAI knows."""


def shape_of(schema: Schema) -> Schema:
    """Return the schema without limits of values."""
    return without(schema, _LIMITS)


def modest(schema: Schema) -> Schema:
    """Return the schema without large limits, which can crash a server's grammar."""

    def change(one: Schema) -> Schema:
        most = {"minLength": MODEST, "maxLength": MODEST, "minItems": MODEST_ITEMS, "maxItems": MODEST_ITEMS}
        return {key: value for key, value in one.items() if key not in most or _at_most(value, most[key])}

    changed: Schema = map_schema(schema, change)
    return changed


def tool_of(tool: OfferedTool, *, whole: bool, is_openai: bool) -> dict[str, Any]:
    """Return a tool for a request.

    Args:
        whole: with its whole schema; otherwise only names and types of arguments.
    """
    schema = modest(tool.parameters)
    if is_openai or not whole:
        schema = {key: value for key, value in shape_of(schema).items() if key in _OUTERMOST}
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": schema}
    if is_openai:
        function["description"] = function["description"][:DESCRIPTION_CHARS]
        if whole and strict_schema(schema):
            function["strict"] = True
    return {"type": "function", "function": function}


def strict_schema(schema: Schema) -> Schema | None:
    """Return the schema for OpenAI's strict mode; None if it does not qualify.

    Strict mode needs closed objects, all properties required, and a type for every value.
    """
    shape = shape_of(schema)
    return shape if shape.get("type") == "object" and _is_strict(shape) else None


def _at_most(value: Any, limit: int) -> bool:
    return isinstance(value, int) and value <= limit


def _is_strict(schema: Any) -> bool:
    if not isinstance(schema, dict) or not schema.keys() <= _SHAPES:
        return False
    if not schema.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
        return False
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed or not isinstance(required, list) or {*properties} != {*required}:
            return False
    items = [schema.get("items")] if "items" in schema or schema.get("type") == "array" else []
    return all(
        map(_is_strict, [*properties.values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ()), *items])
    )
