"""Change the JSON Schemas of tools, and describe the form of JSON answers."""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from packetgate.state.printing import compact_json

Schema = dict[str, Any]

_COMBINING = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"})
"""Keywords that may add properties to the listed properties of an object."""

LARGEST = 9 * 10**18
"""Limit of numbers; fits a signed 64-bit integer."""
SMALLEST = 1e-9
"""Smallest step between two numbers."""

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


def without_keywords(schema: Schema, keywords: Set[str]) -> Schema:
    """Return the schema without these keywords."""
    reduced: Schema = map_schema(schema, lambda one: {key: value for key, value in one.items() if key not in keywords})
    return reduced


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


def with_size_limits(schema: Any, *, items: int, characters: int) -> Any:
    """Return the schema with limits, so that every answer ends.

    Arrays, texts and numbers get limits. Objects that list all properties accept no other properties.
    """
    closes = not _may_add_properties(schema)

    def change(one: Schema) -> Schema:
        if one.keys() & {"enum", "const"}:
            return one
        kinds = one["type"] if isinstance(one.get("type"), list) else [one.get("type")]
        if "array" in kinds and "maxItems" not in one:
            one = {**one, "maxItems": max(items, _int_or_zero(one.get("minItems")))}
        if "string" in kinds and not one.keys() & {"maxLength", "format", "pattern"}:
            one = {**one, "maxLength": max(characters, _int_or_zero(one.get("minLength")))}
        if "number" in kinds or "integer" in kinds:
            one = {**_number_limits(one), **one}
        if "number" in kinds:
            one = {"multipleOf": SMALLEST, **one}
        if closes and _lists_all_properties(one):
            one = {**one, "additionalProperties": False}
        return one

    return map_schema(schema, change)


def _may_add_properties(schema: Any) -> bool:
    found = False

    def look(one: Schema) -> Schema:
        nonlocal found
        several = isinstance(one.get("allOf"), list) and len(one["allOf"]) > 1
        beside = one.get("properties") and one.keys() & _COMBINING
        found = found or several or bool(beside or one.keys() & {"not", "if", "dependentSchemas"})
        return one

    map_schema(schema, look)
    return found


def _lists_all_properties(schema: Schema) -> bool:
    listed, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(listed, dict) or not isinstance(required, list):
        return False
    open_to = {"additionalProperties", "patternProperties", *_COMBINING}
    return not schema.keys() & open_to and all(name in list(listed) for name in required)


def _number_limits(schema: Schema) -> Schema:
    lacks = {"minimum": -LARGEST, "maximum": LARGEST}
    return {name: limit for name, limit in lacks.items() if f"exclusive{name.capitalize()}" not in schema}


def _int_or_zero(value: Any) -> int:
    return value if isinstance(value, int) else 0


CONFIDENCE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
ANY_OBJECT: Schema = {"type": "object"}
ANY_TEXT: Schema = {"type": "string"}


@dataclass(frozen=True)
class Choice:
    """A place in the answer where the model chooses a value."""

    path: tuple[str, ...]
    """Keys from the root inwards; `*` is any index of an array."""
    options: tuple[str, ...]
    """The values in compact JSON: `true`, `"fs.read"`."""

    @classmethod
    def from_values(cls, *path: str, values: Iterable[Any]) -> "Choice":
        """Return a choice between these values at a path."""
        return cls(path, tuple(compact_json(value) for value in values))

    def matches(self, path: tuple[str | int, ...]) -> bool:
        """Whether a path of keys and indices leads to this choice."""
        return len(path) == len(self.path) and all(
            isinstance(part, int) if wanted == "*" else part == wanted
            for part, wanted in zip(path, self.path, strict=True)
        )


@dataclass(frozen=True)
class AnswerForm:
    """The form of a JSON answer. The model writes keys in the order of the schema."""

    name: str
    """Letters, digits and underscores."""
    body: Schema
    """JSON Schema; `{"$ref": "#/$defs/PART"}` refers to a schema in `parts`."""
    parts: Mapping[str, Schema] = field(default_factory=dict)
    """Schemas without outside references, such as those of tools."""
    choices: tuple[Choice, ...] = ()

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
