"""JSON Schemas in a few words, much as TypeScript writes types: what models read of a tool's arguments."""

import re
from collections.abc import Iterable
from typing import Any

from packetgate.state.printing import compact_json

MAX_DEPTH, MAX_TYPES = 8, 500
"""How deep a schema is read, and how many types of it: references may make it endless."""
NOTED = {
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
"""What is told behind a type, and in which words."""
_UNTOLD = frozenset({"title", "$schema", "$id", "$defs", "definitions"})
"""What tells nobody anything, or is written where it is referred to."""
_KINDS = frozenset({"string", "number", "integer", "boolean", "null"})
_SHAPING = frozenset({"type", "items", "properties", "required", "additionalProperties"})
_PLAIN = re.compile(r"[A-Za-z_$][\w$]*")


class _TooRichError(Exception):
    """A schema says what the short form has no words for."""


def short_schema(schema: dict[str, Any]) -> str:
    """Return a schema in short, or as compact JSON where that would leave something out, or be no shorter."""
    whole = compact_json(schema)
    try:
        return min(_Reader(schema).type(schema, 0), whole, key=len)
    except _TooRichError:
        return whole


class _Reader:
    """Writes the types of one schema; raises `_TooRichError` where there is more to one than it has words for."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = MAX_TYPES

    def type(self, schema: Any, depth: int) -> str:
        """Return a schema's type, with what is noted of it in parentheses."""
        self._left -= 1
        if schema is True:
            return "any"
        if not isinstance(schema, dict):
            raise _TooRichError
        kind = {key: value for key, value in schema.items() if key not in NOTED and key not in _UNTOLD}
        notes = "; ".join(filter(None, (_note(key, schema[key]) for key in NOTED if key in schema)))
        return self._kind(kind, depth) + (f" ({notes})" if notes else "")

    def _kind(self, schema: dict[str, Any], depth: int) -> str:
        if depth > MAX_DEPTH or self._left < 0:
            raise _TooRichError
        kind, keys = schema.get("type"), schema.keys()
        if keys <= {"enum", "type"} and isinstance(schema.get("enum"), list):
            return " | ".join(map(compact_json, schema["enum"]))
        if "const" in keys and keys <= {"const", "type"}:
            return compact_json(schema["const"])
        if len(keys) == 1 and isinstance(ways := schema.get("anyOf", schema.get("oneOf")), list):
            return _union(self.type(one, depth + 1) for one in ways)
        if keys == {"$ref"}:
            return self.type(self._referred(schema["$ref"]), depth + 1)
        if not keys:
            return "any"
        if isinstance(kind, list):
            return _union(self._kind({**schema, "type": one}, depth + 1) for one in kind)
        if keys <= _SHAPING and isinstance(kind or "", str):  # what shapes one type says nothing of another
            if kind in _KINDS:
                return str(kind)
            if kind == "array":
                return f"{_grouped(self.type(schema.get('items', True), depth + 1))}[]"
            if kind == "object" or (kind is None and "properties" in keys):
                return self._object(schema, depth)
        raise _TooRichError

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise _TooRichError
        names = dict.fromkeys([*properties, *(str(name) for name in required)])
        parts = [
            f"{_name(name)}{'' if name in required else '?'}: {self.type(properties.get(name, True), depth + 1)}"
            for name in names
        ]
        if more := schema.get("additionalProperties", bool(depth) and not parts):
            parts.append(f"[name]: {self.type(more, depth + 1)}")
        return "{" + ", ".join(parts) + "}"

    def _referred(self, place: Any) -> Any:
        """Return what a reference refers to, which must be one of the schema's own definitions."""
        start, _, name = str(place).rpartition("/")
        named = self._root.get(start.removeprefix("#/")) if start in {"#/$defs", "#/definitions"} else None
        if not isinstance(named, dict) or name not in named:
            raise _TooRichError
        return named[name]


def _note(key: str, value: Any) -> str:
    """Return what a keyword says; nothing for a default of null, or a demand that is not made."""
    if value is None or (value is False and key == "uniqueItems"):
        return ""
    if key == "description":
        return " ".join(str(value).split())
    return f"{NOTED[key]}: {compact_json(value)}"


def _union(types: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(types)) or "any"


def _grouped(kind: str) -> str:
    return kind if _PLAIN.fullmatch(kind) else f"({kind})"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else compact_json(name)
