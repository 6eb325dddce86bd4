"""Change the JSON Schemas of tools."""

from collections.abc import Callable, Set
from typing import Any

Schema = dict[str, Any]

_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def map_schema(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Return the schema with `change` applied to it and to every schema inside it, innermost first."""
    if not isinstance(schema, dict):
        return schema
    mapped = dict(schema)
    for key, value in schema.items():
        if key in _BY_NAME and isinstance(value, dict):
            mapped[key] = {name: map_schema(one, change) for name, one in value.items()}
        elif key in _LISTS and isinstance(value, list):
            mapped[key] = [map_schema(one, change) for one in value]
        elif key in _SINGLE:
            mapped[key] = map_schema(value, change)
    return change(mapped)


BOUNDS = frozenset(
    {"minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "title"}
    | {"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "additionalProperties", "$schema"}
)
"""Keywords that are left out of prompts."""
_DETAILS = BOUNDS | {"description", "default", "example", "examples", "format", "pattern"}


def without_keywords(schema: Schema, keywords: Set[str]) -> Schema:
    """Return the schema without these keywords."""
    reduced: Schema = map_schema(schema, lambda one: {key: value for key, value in one.items() if key not in keywords})
    return reduced


def outline(schema: Schema) -> Schema:
    """Return the schema with types, enums and required properties, and without descriptions and limits."""

    def change(one: Schema) -> Schema:
        kept = {key: value for key, value in one.items() if key not in _DETAILS}
        others = one.get("additionalProperties", False)  # a server's grammar needs to know whether it is open
        return kept if others is False else {**kept, "additionalProperties": others}

    changed: Schema = map_schema(schema, change)
    return changed


ANY_OBJECT: Schema = {"type": "object"}
ANY_TEXT: Schema = {"type": "string"}


def object_schema(**properties: Schema) -> Schema:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
