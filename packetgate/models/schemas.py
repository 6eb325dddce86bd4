"""JSON Schemas: changing those that come from elsewhere, and the form that an answer must have."""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from packetgate.state.printing import compact_json

Schema = dict[str, Any]

_COMBINING = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"})
"""Keywords that may add properties to those that an object lists."""

LARGEST = 9 * 10**18
"""Largest number; it fits a signed 64-bit integer."""
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
"""Keywords that a model does not need to read."""


def without_keywords(schema: Schema, keywords: Set[str]) -> Schema:
    """Return the schema without these keywords."""
    found: Schema = map_schema(schema, lambda one: {key: value for key, value in one.items() if key not in keywords})
    return found


def with_moved_references(schema: Any, place: str) -> Any:
    """Return the schema with its internal references moved to `place`, such as `#/$defs/tool`.

    Its `$id` is dropped, because references would resolve against it.
    """

    def change(one: Schema) -> Schema:
        reference = one.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            return {**one, "$ref": place + reference[1:]}
        return one

    moved = map_schema(schema, change)
    return {key: value for key, value in moved.items() if key != "$id"} if isinstance(moved, dict) else moved


def with_size_limits(schema: Any, *, items: int, characters: int) -> Any:
    """Return the schema narrowed so that any answer ends.

    Arrays, texts and numbers get limits, and objects that list their properties are closed.
    """
    closes = not _combines(schema)

    def change(one: Schema) -> Schema:
        if one.keys() & {"enum", "const"}:
            return one
        kinds = one["type"] if isinstance(one.get("type"), list) else [one.get("type")]
        if "array" in kinds and "maxItems" not in one:
            one = {**one, "maxItems": max(items, _whole(one.get("minItems")))}
        if "string" in kinds and not one.keys() & {"maxLength", "format", "pattern"}:
            one = {**one, "maxLength": max(characters, _whole(one.get("minLength")))}
        if "number" in kinds or "integer" in kinds:
            one = {**_limits(one), **one}
        if "number" in kinds:
            one = {"multipleOf": SMALLEST, **one}
        if closes and _lists_all(one):
            one = {**one, "additionalProperties": False}
        return one

    return map_schema(schema, change)


def _combines(schema: Any) -> bool:
    found = False

    def look(one: Schema) -> Schema:
        nonlocal found
        several = isinstance(one.get("allOf"), list) and len(one["allOf"]) > 1
        beside = one.get("properties") and one.keys() & _COMBINING
        found = found or several or bool(beside or one.keys() & {"not", "if", "dependentSchemas"})
        return one

    map_schema(schema, look)
    return found


def _lists_all(schema: Schema) -> bool:
    listed, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(listed, dict) or not isinstance(required, list):
        return False
    open_to = {"additionalProperties", "patternProperties", *_COMBINING}
    return not schema.keys() & open_to and all(name in list(listed) for name in required)


def _limits(schema: Schema) -> Schema:
    lacks = {"minimum": -LARGEST, "maximum": LARGEST}
    return {name: limit for name, limit in lacks.items() if f"exclusive{name.capitalize()}" not in schema}


def _whole(value: Any) -> int:
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
    def among(cls, *path: str, values: Iterable[Any]) -> "Choice":
        """Return the choice between these values."""
        return cls(path, tuple(compact_json(value) for value in values))

    def stands_at(self, path: tuple[str | int, ...]) -> bool:
        """Whether a path of keys and indices is this place."""
        return len(path) == len(self.path) and all(
            isinstance(part, int) if wanted == "*" else part == wanted
            for part, wanted in zip(path, self.path, strict=True)
        )


@dataclass(frozen=True)
class AnswerForm:
    """The form of an answer: objects with keys in writing order."""

    name: str
    """Letters, digits and underscores."""
    body: Schema
    """JSON Schema; refers to a part as `{"$ref": "#/$defs/PART"}`."""
    parts: Mapping[str, Schema] = field(default_factory=dict)
    """Self-contained schemas, such as tools' own."""
    choices: tuple[Choice, ...] = ()

    def schema(self) -> Schema:
        """Return the whole schema."""
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
