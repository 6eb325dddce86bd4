"""Change the JSON Schemas of tools, and describe the form of JSON answers."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
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


def with_moved_references(schema: Any, place: str) -> Any:
    """Return the schema with its internal references moved to `place`, such as `#/$defs/tool`.

    The `$id` is removed, because references would resolve against it.
    """

    def change(one: Schema) -> Schema:
        reference = one.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            return {**one, "$ref": place + reference[1:]}
        return one

    moved = map_schema(schema, change)
    return {key: value for key, value in moved.items() if key != "$id"} if isinstance(moved, dict) else moved


CONFIDENCE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
ANY_OBJECT: Schema = {"type": "object"}
ANY_TEXT: Schema = {"type": "string"}


@dataclass(frozen=True)
class AnswerForm:
    """The form of a JSON answer. The model writes keys in the order of the schema."""

    name: str
    """Letters, digits and underscores."""
    body: Schema
    """JSON Schema; `{"$ref": "#/$defs/PART"}` refers to a schema in `parts`."""
    parts: Mapping[str, Schema] = field(default_factory=dict)
    """Schemas without outside references, such as those of tools."""

    def schema(self) -> Schema:
        """Return the schema with its parts."""
        parts = {name: with_moved_references(part, f"#/$defs/{name}") for name, part in self.parts.items()}
        return {**self.body, "$defs": parts} if parts else dict(self.body)


def object_schema(**properties: Schema) -> Schema:
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def text_schema(limit: int) -> Schema:
    """Return the schema of a text of at most `limit` characters."""
    return {"type": "string", "maxLength": limit}
