"""Render JSON Schemas in a short form, similar to TypeScript types, for prompts."""

import re
from collections.abc import Iterable
from typing import Any

from packetgate.state.printing import compact_json

MAX_DEPTH, MAX_TYPES = 8, 500
"""Limits for a schema that is shortened: recursive references have no end."""
NOTES = {
    "description": "",
    "default": "default",
    "examples": "such as",
    "format": "format",
    "pattern": "pattern",
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
    "multipleOf": "multiple of",
    "minLength": "characters at least",
    "maxLength": "characters at most",
    "minItems": "items at least",
    "maxItems": "items at most",
    "uniqueItems": "unique",
}
"""Labels of the keywords that are written in parentheses behind a type."""
_OMITTED = frozenset({"title", "$schema", "$id", "$defs", "definitions"})
_SIMPLE = frozenset({"string", "number", "integer", "boolean", "null"})
_SHAPING = frozenset({"type", "items", "properties", "required", "additionalProperties"})
_PLAIN = re.compile(r"[A-Za-z_$][\w$]*")


class _UnsupportedError(Exception):
    pass


def short_schema(schema: dict[str, Any]) -> str:
    """Return a schema in short form, or as compact JSON if that is shorter or the short form cannot express it."""
    full = compact_json(schema)
    try:
        return min(_Writer(schema).type(schema, 0), full, key=len)
    except _UnsupportedError:
        return full


class _Writer:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._remaining_types = MAX_TYPES

    def type(self, schema: Any, depth: int) -> str:
        self._remaining_types -= 1
        if schema is True:
            return "any"
        if not isinstance(schema, dict):
            raise _UnsupportedError
        kind = {key: value for key, value in schema.items() if key not in NOTES and key not in _OMITTED}
        notes = "; ".join(filter(None, (_note(key, schema[key]) for key in NOTES if key in schema)))
        return self._kind(kind, depth) + (f" ({notes})" if notes else "")

    def _kind(self, schema: dict[str, Any], depth: int) -> str:
        if depth > MAX_DEPTH or self._remaining_types < 0:
            raise _UnsupportedError
        kind, keys = schema.get("type"), schema.keys()
        if keys <= {"enum", "type"} and isinstance(schema.get("enum"), list):
            return " | ".join(map(compact_json, schema["enum"]))
        if "const" in keys and keys <= {"const", "type"}:
            return compact_json(schema["const"])
        if len(keys) == 1 and isinstance(options := schema.get("anyOf", schema.get("oneOf")), list):
            return _union(self.type(one, depth + 1) for one in options)
        if keys == {"$ref"}:
            return self.type(self._definition(schema["$ref"]), depth + 1)
        if not keys:
            return "any"
        if isinstance(kind, list):
            return _union(self._kind({**schema, "type": one}, depth + 1) for one in kind)
        if keys <= _SHAPING and isinstance(kind or "", str):  # a keyword for one type has no effect on another type
            if kind in _SIMPLE:
                return str(kind)
            if kind == "array":
                items = self.type(schema.get("items", True), depth + 1)
                return f"{items if _PLAIN.fullmatch(items) else f'({items})'}[]"
            if kind == "object" or (kind is None and "properties" in keys):
                return self._object(schema, depth)
        raise _UnsupportedError

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise _UnsupportedError
        names = dict.fromkeys([*properties, *(str(name) for name in required)])
        parts = [
            f"{name if _PLAIN.fullmatch(name) else compact_json(name)}{'' if name in required else '?'}: "
            + self.type(properties.get(name, True), depth + 1)
            for name in names
        ]
        if others := schema.get("additionalProperties", bool(depth) and not parts):
            parts.append(f"[name]: {self.type(others, depth + 1)}")
        return "{" + ", ".join(parts) + "}"

    def _definition(self, reference: Any) -> Any:
        start, _, name = str(reference).rpartition("/")
        definitions = self._root.get(start.removeprefix("#/")) if start in {"#/$defs", "#/definitions"} else None
        if not isinstance(definitions, dict) or name not in definitions:
            raise _UnsupportedError
        return definitions[name]


def _note(key: str, value: Any) -> str:
    if value is None or (value is False and key == "uniqueItems"):
        return ""
    if key == "description":
        return " ".join(str(value).split())
    return f"{NOTES[key]}: {compact_json(value)}"


def _union(types: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(types)) or "any"
