"""Normalize the input schemas of servers, in any dialect, to the newest draft of JSON Schema.

Unusable keywords are left out and reported; the server checks them. Inside `not`, `if` and `oneOf`, leaving out a
keyword could make the schema refuse more values. There, the whole `not` or `if` is left out, and `oneOf` becomes
`anyOf`.
"""

import json
from collections import deque
from typing import Any
from urllib.parse import quote, unquote

from jsonschema_rs import is_valid, meta

from packetgate.tools.checks.validation import portable_pattern

MAX_DEPTH = 100
"""Deepest part of a schema that is read."""
MAX_SIZE = 2**53

_TYPES = {
    **{kind: kind for kind in ("null", "boolean", "integer", "number", "string", "array", "object")},
    **dict.fromkeys(
        "str text char date datetime date-time time uuid uri url email password byte bytes".split(), "string"
    ),
    **dict.fromkeys("int int32 int64 long short".split(), "integer"),
    **dict.fromkeys("float double decimal numeric".split(), "number"),
    **dict.fromkeys("bool".split(), "boolean"),
    **dict.fromkeys("list tuple set".split(), "array"),
    **dict.fromkeys("dict map record hash".split(), "object"),
    **dict.fromkeys("none nil".split(), "null"),
}
_ANYTHING = frozenset({"any", "mixed", "unknown", "*", "type_unspecified", ""})
_NULLABLE = frozenset({"nullable", "x-nullable"})
_IGNORED = frozenset(
    {"$schema", "$vocabulary", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "discriminator", "xml"}
    | {"externalDocs", "optional", "required", "additionalItems", "components", *_NULLABLE}
)
"""Keywords that are irrelevant to validation, or handled elsewhere."""
_DATA = frozenset({"const", "default"})
"""Keywords whose value may be null."""
_TEXTS = frozenset({"title", "description", "$comment", "format", "contentEncoding", "contentMediaType"})
_SINGLE = frozenset("items additionalProperties not if then else contains propertyNames contentSchema".split())
"""Keywords whose value is a schema."""
_UNSUPPORTED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords that can keep a validator from terminating."""
_DEFINITIONS = ("$defs", "definitions", "schemas")
"""Keywords with named definitions; the last in OpenAPI's `components`."""
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_ABOUT = frozenset({"title", "description", "type"})

_SAFE = "~$&'()*+,;=:@!-._"

_Schema = dict[str, Any]


def normalize_schema(schema: Any) -> tuple[dict[str, Any] | bool, list[str]]:
    """Return an input schema in the newest draft, and a phrase for each keyword that was left out."""
    if schema is False:
        return False, []
    if schema is None or schema in ({}, []):
        return {"type": "object"}, []
    if not isinstance(schema, dict):
        changes = [] if schema is True else ["the input schema is not a JSON object: any arguments are accepted"]
        return {"type": "object", "additionalProperties": True}, changes
    normalizer = _Normalizer(schema)
    read = normalizer.normalize()
    if "object" in read.get("type", "object"):
        read["type"] = "object"
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and "/2020-12/" in dialect:
        read = {"$schema": dialect, **read}  # a client must see the draft that its server names
    return read, list(dict.fromkeys(normalizer.changes))


class _Normalizer:
    """Normalizes a schema, and notes each change with its place, such as `user.names[]`."""

    def __init__(self, root: _Schema) -> None:
        self.changes: list[str] = []
        self._depth = 0
        self._definitions = _definitions_in(root)
        self._root = root
        for _ in self._definitions:  # a schema that is only a reference is replaced by its target
            target, rest = self._target(self._root.get("$ref")), self._root.keys() - {"$ref"}
            is_extended = bool({"properties", "additionalProperties"} & rest)
            if not isinstance(target, dict) or target is self._root or is_extended or target.keys() & rest - _ABOUT:
                break
            self._root = {**target, **{key: self._root[key] for key in self._root if key in rest}}
        self._names = {id(self._root): "#"}
        """References to definitions, by the `id()` of the definition."""
        self._added_definitions: dict[str, Any] = {}
        """Targets of references that are still to be added to the definitions."""
        for key in ("$defs", "definitions"):
            named = self._root.get(key)
            pointers = (
                {id(part): _pointer(key, name) for name, part in named.items()} if isinstance(named, dict) else {}
            )
            self._names = pointers | self._names

    def normalize(self) -> Any:
        """Return the normalized schema, with the targets of all references in its definitions."""
        read: Any = self.schema(self._root, "")
        while self._added_definitions:
            name, target = self._added_definitions.popitem()
            read["$defs"] = {**read.get("$defs", {}), name: self.schema(target, name)}
        return read

    def schema(self, raw: Any, place: str) -> _Schema | bool:
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, dict) or self._depth > MAX_DEPTH:
            if raw is not None:
                self._leave_out(place, "its schema", "nested too deeply" if self._depth > MAX_DEPTH else "it is none")
            return {}
        given = _without_nullable(raw)
        read: _Schema = {}
        self._depth += 1
        for key, value in given.items():
            if key in _REFERENCES and value is not None:
                self._reference(read, value, raw, place)
            elif (value is not None or key in _DATA) and key not in _IGNORED:
                self._keyword(read, key, value, place)
        self._required(read, given, place)
        for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(read.get(exclusive), bool) and read.pop(exclusive) and limit in read:
                read[exclusive] = read.pop(limit)
        if "prefixItems" in read and given.get("additionalItems") is not None:
            self._single(read, "items", given["additionalItems"], place)
        self._resolve_contradiction(read, place)
        self._depth -= 1
        return read

    def _keyword(self, read: _Schema, key: str, value: Any, place: str) -> None:
        match key:
            case "type":
                self._type(read, value, place)
            case "properties" | "patternProperties":
                self._properties(read, key, value, place)
            case "items" | "prefixItems" if isinstance(value, list):
                items = [self.schema(part, f"{place}[{at}]") for at, part in enumerate(value)]
                read |= {"prefixItems": items} if items else {}
            case "allOf" | "anyOf" | "oneOf":
                self._options(read, key, value, place)
            case "$defs" | "definitions" | "dependentSchemas" if isinstance(value, dict):
                read[key] = {name: self.schema(part, name) for name, part in value.items()}
            case _ if key in _SINGLE or key == "prefixItems":
                self._single(read, "items" if key == "prefixItems" else key, value, place)
            case _ if key in _UNSUPPORTED:
                self._leave_out(place, key)
            case _:
                normalized = _normalized_value(key, value)
                if normalized is None and value is not None:
                    self._leave_out(place, key, ascii(value)[:80] if key == "pattern" else json.dumps(value)[:60])
                else:
                    read[key] = normalized

    def _leave_out(self, place: str, keyword: str, reason: str = "") -> None:
        self.changes.append(f"{place or 'the arguments'}: {keyword} left out{f' ({reason})' if reason else ''}")

    def _single(self, read: _Schema, key: str, value: Any, place: str) -> None:
        value, before = _parse_bool(value), len(self.changes)
        if not isinstance(value, bool | dict):
            self._leave_out(place, key)
            return
        part = self.schema(value, f"{place}[]" if key == "items" else place)
        if key in {"not", "if"} and len(self.changes) > before:
            self._leave_out(place, key, "part of it cannot be used")
        else:
            read[key] = part

    def _options(self, read: _Schema, key: str, value: Any, place: str) -> None:
        options, before = [value] if isinstance(value, dict) else value, len(self.changes)
        if not isinstance(options, list):
            self._leave_out(place, key)
        elif options:
            parts = [self.schema(part, place) for part in options]
            key = "anyOf" if key == "oneOf" and len(self.changes) > before else key
            if key == "anyOf" and key in read:
                key, parts = "allOf", [{key: parts}]
            read[key] = [*read.get(key, ()), *parts]

    def _type(self, read: _Schema, value: Any, place: str) -> None:
        names = value.split("|") if isinstance(value, str) else value if isinstance(value, list) else [value]
        words = [name.strip().casefold() if isinstance(name, str) else "?" for name in names]
        if not _ANYTHING.isdisjoint(words):
            return
        if not {*words} <= _TYPES.keys():
            self._leave_out(place, "type", json.dumps(value)[:60])
            return
        kinds = list(dict.fromkeys(_TYPES[word] for word in words))
        if kinds:
            read["type"] = kinds[0] if len(kinds) == 1 else kinds

    def _properties(self, read: _Schema, key: str, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            self._leave_out(place, key)
            return
        parts = read[key] = {}
        for name, part in value.items():
            pattern = portable_pattern(name) if key == "patternProperties" else name
            if pattern is None:
                self._leave_out(place, key, ascii(name)[:80])
            else:
                parts[pattern] = self.schema(part, f"{place}.{name}".lstrip("."))

    def _required(self, read: _Schema, given: _Schema, place: str) -> None:
        value, properties = _parse_bool(given.get("required")), given.get("properties")
        names = value if isinstance(value, list) else []
        if isinstance(value, str) and value in read.get("properties", {}):
            names = [value]
        elif not isinstance(value, bool | list) and value not in (None, {}):
            self._leave_out(place, "required")
        if isinstance(properties, dict):
            names = [*names, *(name for name, part in properties.items() if _is_required(part))]
        names = list(dict.fromkeys(name for name in names if isinstance(name, str)))
        if names or value == []:
            read["required"] = names
        if value is True and not place:
            self._leave_out(place, "required")
        patterns = given.get("patternProperties")
        if isinstance(patterns, dict) and len(read["patternProperties"]) < len(patterns):
            read |= {"additionalProperties": True} if "additionalProperties" in read else {}

    def _resolve_contradiction(self, read: _Schema, place: str) -> None:
        kinds = read.get("type")
        listed = [read["const"]] if "const" in read else read.get("enum")
        if kinds is None or listed is None or any(is_valid({"type": kinds}, value) for value in listed):
            return
        if kinds == "array" and "enum" in read and isinstance(read.get("items", {}), dict):
            read.setdefault("items", {})["enum"] = read.pop("enum")
        else:
            names = [kinds] if isinstance(kinds, str) else kinds
            self._leave_out(place, "type", f"none of its values is of type {' or '.join(names)}")
            del read["type"]

    def _reference(self, read: _Schema, value: Any, raw: _Schema, place: str) -> None:
        target = self._target(value)
        if target is None or self._leads_back(target, raw):
            problem = "has no target" if target is None else "refers to itself"
            self._leave_out(place, "$ref", f"{ascii(value)[:80]} {problem}")
            return
        if id(target) not in self._names:
            name = value.rpartition("/")[2] or "part"
            while name in self._added_definitions or self._definitions.get(name, target) is not target:
                name += "_"
            self._added_definitions[name] = self._definitions[name] = target
            self._names[id(target)] = _pointer("$defs", name)
        reference = {"$ref": self._names[id(target)]}
        read |= {"allOf": [*read.get("allOf", ()), reference]} if "$ref" in read else reference

    def _leads_back(self, target: Any, raw: _Schema) -> bool:
        """Whether a chain of references, from `target` on, reaches `raw` or is cyclic."""
        passed = [raw]
        while isinstance(target, dict):
            if any(target is schema for schema in passed):
                return True
            passed.append(target)
            target = self._target(target.get("$ref"))
        return False

    def _target(self, reference: Any) -> Any:
        """Return the schema to which a reference points, or the definition of this name; None if there is neither."""
        if not isinstance(reference, str):
            return None
        address, _, fragment = reference.partition("#")
        if address:
            return None if "/" in address or fragment else self._definitions.get(address)
        steps = [step.replace("~1", "/").replace("~0", "~") for step in unquote(fragment).split("/")]
        target: Any = None if steps[0] else self._root
        for step in steps[1:]:
            try:
                target = target[int(step) if isinstance(target, list) else step]
            except (LookupError, TypeError, ValueError):
                target = None
        return target if isinstance(target, dict | bool) else self._definitions.get(steps[-1])


def _definitions_in(root: _Schema) -> dict[str, Any]:
    """Return all definitions in a schema by name; if several have the same name, the outermost."""
    definitions: dict[str, Any] = {}
    pending = deque[Any]([root])
    while pending:
        value = pending.popleft()
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(inner, dict | list):
                pending.append(inner)
            for name, part in inner.items() if key in _DEFINITIONS and isinstance(inner, dict) else ():
                if isinstance(part, dict | bool):
                    definitions.setdefault(name, part)
    return definitions


def _pointer(key: str, name: str) -> str:
    escaped = name.replace("~", "~0").replace("/", "~1")
    return f"#/{key}/{quote(escaped, safe=_SAFE)}"


def _without_nullable(given: _Schema) -> _Schema:
    if given.get("nullable") is not True and given.get("x-nullable") is not True:
        return given
    rest = {key: value for key, value in given.items() if key not in _NULLABLE}
    kinds = rest.get("type")
    if not isinstance(kinds, str | list):
        return {"anyOf": [rest, {"type": "null"}]} if rest else rest
    rest["type"] = [*(kinds.split("|") if isinstance(kinds, str) else kinds), "null"]
    return {**rest, "enum": [*rest["enum"], None]} if isinstance(rest.get("enum"), list) else rest


def _normalized_value(key: str, value: Any) -> Any:
    if key == "pattern":
        return portable_pattern(value) if isinstance(value, str) else None
    if key == "enum":
        values = value if isinstance(value, list) else []
        return [*{json.dumps(item, sort_keys=True): item for item in values}.values()] or None
    if key in _DATA or (key in {"exclusiveMinimum", "exclusiveMaximum"} and isinstance(value, bool)):
        return value
    if key in _TEXTS and isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = " ".join(value)
    elif isinstance(value, str) and not meta.is_valid({key: value}):
        try:
            value = _parse_bool(json.loads(value.casefold()))
        except ValueError:
            return None
    is_size = key.startswith(("min", "max")) and key not in {"minimum", "maximum"}
    if is_size and isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if meta.is_valid({key: value}) and not (is_size and value > MAX_SIZE) else None


def _parse_bool(value: Any) -> Any:
    return value.casefold() == "true" if isinstance(value, str) and value.casefold() in {"true", "false"} else value


def _is_required(schema: Any) -> bool:
    return isinstance(schema, dict) and _parse_bool(schema.get("required")) is True
