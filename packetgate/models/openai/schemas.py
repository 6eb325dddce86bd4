"""The part of JSON Schema that OpenAI keeps an answer to, and what of a schema any server can keep."""

from typing import Any

from packetgate.models.calling import OfferedTool
from packetgate.models.schemas import Schema, map_schema, without
from packetgate.state.printing import compact_json

_LIMITS = frozenset(
    {"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "default", "examples"}
)
"""Keywords that do not shape an answer: servers refuse some of them, or pass over them."""

MODEST, MODEST_ITEMS = 300, 30
"""The longest text, in characters, and the longest array that a server is asked to count out."""

DESCRIPTION_CHARS = 1_024
"""The longest description of a tool that OpenAI takes."""

_OUTERMOST = frozenset({"type", "properties", "required", "additionalProperties", "$defs", "definitions"})
"""The keywords that OpenAI takes at the outermost place of a tool's schema."""

_SHAPES = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"}
    | {"title", "description"}
)
"""The keywords that OpenAI knows beside those limits."""


def shape_of(schema: Schema) -> Schema:
    """Return the schema without its limits: what fits the schema fits its shape."""
    return without(schema, _LIMITS)


def modest(schema: Schema) -> Schema:
    """Return the schema without limits so large that a server's grammar, which may write them out, ends the server."""

    def change(one: Schema) -> Schema:
        most = {"minLength": MODEST, "maxLength": MODEST, "minItems": MODEST_ITEMS, "maxItems": MODEST_ITEMS}
        return {key: value for key, value in one.items() if key not in most or _at_most(value, most[key])}

    changed: Schema = map_schema(schema, change)
    return changed


def tool_of(tool: OfferedTool, *, whole: bool, is_openai: bool) -> dict[str, Any]:
    """Return a tool as a request offers it.

    Args:
        whole: with all of its schema that a server can be held to. Without, only the types and names of its arguments.
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
    """Return the shape of the schema as OpenAI's strict mode takes it; None: it does not.

    Strict mode wants every object closed, every property required, and a type for every value.
    """
    shape = shape_of(schema)
    return shape if shape.get("type") == "object" and _is_strict(shape) else None


def grouped(schema: Schema) -> Schema:
    """Return the schema with alternatives that differ in one constant, or not at all, as one that takes any of them.

    What fits the one fits the other.
    """

    def change(one: Schema) -> Schema:
        if "anyOf" not in one:
            return one
        groups: dict[str, list[Schema]] = {}
        for way in one["anyOf"]:
            groups.setdefault(compact_json(_without_constant(way)), []).append(way)
        ways = [_merged(group) for group in groups.values()]
        if all(way.keys() == {"const"} for way in ways):
            ways = [{"enum": [way["const"] for way in ways]}]
        return ways[0] if len(ways) == 1 and one.keys() == {"anyOf"} else {**one, "anyOf": ways}

    changed: Schema = map_schema(schema, change)
    return changed


def one_object(schema: Schema) -> Schema:
    """Return a schema of one object instead of several alternatives, which OpenAI does not take at the outermost place.

    What fits the schema fits the result.
    """
    ways = schema.get("anyOf")
    if not ways:
        return schema
    kinds: dict[str, list[Schema]] = {}
    for way in ways:
        for name, kind in way["properties"].items():
            if kind not in kinds.setdefault(name, []):
                kinds[name].append(kind)
    merged: Schema = {
        "type": "object",
        "properties": {name: each[0] if len(each) == 1 else {"anyOf": each} for name, each in kinds.items()},
        "required": [name for name in kinds if all(name in way["required"] for way in ways)],
        "additionalProperties": False,
    }
    return merged | {key: value for key, value in schema.items() if key != "anyOf"}


def _constants(way: Schema) -> dict[str, Any]:
    return {name: kind["const"] for name, kind in way.get("properties", {}).items() if "const" in kind}


def _without_constant(way: Schema) -> Any:
    constants = _constants(way)
    if len(constants) != 1:
        return way
    return {**way, "properties": {**way["properties"], **{name: {} for name in constants}}}


def _merged(group: list[Schema]) -> Schema:
    values = [value for way in group for value in _constants(way).values()]
    if len(group) == 1 or not values:
        return group[0]
    return {**group[0], "properties": {**group[0]["properties"], next(iter(_constants(group[0]))): {"enum": values}}}


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
