"""Normalize the input schemas of servers, in any dialect, to one that can be checked.

Unusable keywords are left out and named; the server checks them.
"""

import json
from collections.abc import Mapping
from typing import Any

from jsonschema_rs import is_valid, meta

from packetgate.tools.checks.references import DEFINITIONS, LISTS, NAMES, REFERENCES, SINGLE, relinked
from packetgate.tools.checks.validation import usable_pattern

MAX_DEPTH = 100
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
"""Types without restriction; other unknown types are left out and named."""
_IGNORED = frozenset(
    {"$schema", "$vocabulary", "discriminator", "xml", "externalDocs", "optional", "required", "nullable", "x-nullable"}
)
"""Keywords that are irrelevant to validation, or read elsewhere."""
_NULLABLE = frozenset({"nullable", "x-nullable"})
_OLD_NAMES = {"divisibleBy": "multipleOf", "extends": "allOf", "disallow": "not"}
_DATA = frozenset({"const", "default"})
"""Keywords whose value is data, so that null is a value."""
_TEXTS = frozenset({"title", "description", "$comment", "format", "contentEncoding", "contentMediaType"})
_BESIDE_REFERENCES = frozenset({"$ref", "$defs", "definitions", "title", "description", "default", "examples", "$id"})


def normalised(schema: Any) -> tuple[dict[str, Any] | bool, list[str]]:
    """Return an input schema in the newest draft, and one phrase for each keyword that was left out."""
    dialect = schema.get("$schema") if isinstance(schema, Mapping) else None
    dialect = dialect if isinstance(dialect, str) else ""
    reader = _Reader(ignores_siblings="draft-0" in dialect)
    whole = reader.whole(schema)
    if isinstance(whole, dict) and "/2020-12/" in dialect:
        whole = {"$schema": dialect, **whole}
    return whole, list(dict.fromkeys(reader.changes))


class _Reader:
    def __init__(self, *, ignores_siblings: bool) -> None:
        self.ignores_siblings = ignores_siblings
        """Whether keywords beside a reference are ignored, as in older drafts."""
        self.changes: list[str] = []
        self.widened: set[int] = set()
        """Ids of schemas of which something was left out, so that they accept more."""
        self.places: dict[int, str] = {}
        self.read: list[dict[str, Any]] = []
        """Keeps the schemas alive, so that ids are unique."""

    def whole(self, root: Any) -> dict[str, Any] | bool:
        if isinstance(root, str):
            try:
                root = json.loads(root)
            except ValueError:
                root = root.strip() or None
        if root is False:
            return False
        if root is None or root in ({}, []):
            return {"type": "object"}
        if not isinstance(root, dict):
            self.changes += [] if root is True else ["it is no schema: any arguments are taken"]
            return {"type": "object", "additionalProperties": True}
        if _lists_parameters_only(root):
            self.changes.append("it is a list of parameters: read as its properties")
            root = {"properties": root}
        read, required = _Schema(self, "", 0).read(_with_definitions(root))
        if not isinstance(read, dict):
            return read
        self.changes += ["required: left out"] if required else []
        linked, changes = relinked(read, self.widened, self.places)
        self.changes += changes
        kind = linked.get("type", "object")
        return {**linked, "type": "object"} if "object" in kind else linked


class _Schema:
    def __init__(self, reader: _Reader, place: str, depth: int) -> None:
        self._reader = reader
        self._place = place
        self._depth = depth
        self._read: dict[str, Any] = {}
        self._needed: list[str] = []
        """Properties that are marked as required themselves."""
        self._rest: Any = None
        """`additionalItems` of older drafts."""
        self._takes_others = False
        """Whether a pattern for properties was left out."""

    def read(self, given: Any) -> tuple[dict[str, Any] | bool, bool]:
        """Return a schema, and whether it marks itself as required."""
        if isinstance(given, bool):
            return given, False
        self._reader.read.append(self._read)
        self._reader.places[id(self._read)] = self._place or "the arguments"
        if isinstance(given, str) and given.casefold() in _TYPES:
            given = {"type": given}
        if not isinstance(given, dict) or self._depth > MAX_DEPTH:
            if given is not None:
                self._leave_out("its schema", "it is none" if self._depth <= MAX_DEPTH else "nested too deeply")
            return self._read, False
        if isinstance(given.get("$ref"), str) and self._reader.ignores_siblings:
            given = {key: value for key, value in given.items() if key in _BESIDE_REFERENCES}
        given = _without_nullable(given)
        for key, value in given.items():
            if (value is not None or key in _DATA) and key not in _IGNORED:
                self._keyword(_OLD_NAMES.get(key, key), value)
        needed = self._required(given.get("required"))
        for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(self._read.get(exclusive), bool) and self._read.pop(exclusive) and limit in self._read:
                self._read[exclusive] = self._read.pop(limit)
        if "prefixItems" in self._read and self._rest is not None:
            self._single("items", self._rest)
        self._contradiction()
        return self._read, needed

    def _inner(self, given: Any, place: str | None = None) -> dict[str, Any] | bool:
        return self._within(self._place if place is None else place).read(given)[0]

    def _within(self, place: str) -> "_Schema":
        return _Schema(self._reader, place, self._depth + 1)

    def _leave_out(self, keyword: str, why: str = "") -> None:
        self._reader.widened.add(id(self._read))
        self._reader.changes.append(f"{self._place or 'the arguments'}: {keyword} left out{f' ({why})' if why else ''}")

    def _keyword(self, key: str, value: Any) -> None:
        match key:
            case "type":
                self._type(value)
            case "properties" | "patternProperties":
                self._properties(key, value)
            case "dependencies":
                self._dependencies(value)
            case "items" | "prefixItems" if isinstance(value, list):
                read = [self._inner(one, f"{self._place}[{at}]") for at, one in enumerate(value)]
                self._read |= {"prefixItems": read} if read else {}
            case "additionalItems":
                self._rest = value
            case "allOf" | "anyOf" | "oneOf":
                self._ways(key, value)
            case "$defs" | "definitions" | "dependentSchemas" if isinstance(value, dict):
                self._read[key] = {name: self._inner(one, name) for name, one in value.items()}
            case _ if key in SINGLE or key == "prefixItems":
                self._single("items" if key == "prefixItems" else key, value)
            case _ if key not in NAMES or isinstance(value, str):
                self._plain(key, value)

    def _plain(self, key: str, value: Any) -> None:
        read = _readable(key, value)
        if read is None and value is not None:
            self._leave_out(key, ascii(value)[:80] if key == "pattern" else json.dumps(value)[:60])
        else:
            self._read[key] = read

    def _single(self, key: str, value: Any) -> None:
        value = _as_switch(value)
        if isinstance(value, bool | dict) or (isinstance(value, str) and value.casefold() in _TYPES):
            self._read[key] = self._inner(value, f"{self._place}[]" if key == "items" else None)
        else:
            self._leave_out(key)

    def _ways(self, key: str, value: Any) -> None:
        ways = [value] if isinstance(value, dict) else value
        if isinstance(ways, list) and ways:
            self._read[key] = [self._inner(one) for one in ways]
        elif ways != []:
            self._leave_out(key)

    def _type(self, value: Any) -> None:
        names = value.split("|") if isinstance(value, str) else value if isinstance(value, list) else [value]
        words = [name.strip().casefold() for name in names if isinstance(name, str)]
        schemas = [name for name in names if isinstance(name, dict)]  # of draft 3
        if not _ANYTHING.isdisjoint(words):
            return
        if len(words) + len(schemas) < len(names) or not {*words} <= _TYPES.keys():
            self._leave_out("type", json.dumps(value)[:60])
            return
        kinds = list(dict.fromkeys(_TYPES[word] for word in words))
        if schemas:
            self._read["anyOf"] = [self._inner(one) for one in [*schemas, *({"type": kind} for kind in kinds)]]
        elif kinds:
            self._read["type"] = kinds[0] if len(kinds) == 1 else kinds

    def _dependencies(self, value: Any) -> None:
        for name, needs in value.items() if isinstance(value, dict) else ():
            if isinstance(needs, str | list):
                names = [one for one in ([needs] if isinstance(needs, str) else needs) if isinstance(one, str)]
                self._read.setdefault("dependentRequired", {})[name] = list(dict.fromkeys(names))
            else:
                self._read.setdefault("dependentSchemas", {})[name] = self._inner(needs)

    def _properties(self, key: str, value: Any) -> None:
        if isinstance(value, list) and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in value):
            value = {one["name"]: {key: inner for key, inner in one.items() if key != "name"} for one in value}
        if not isinstance(value, dict):
            self._leave_out(key)
            return
        read = self._read[key] = {}
        for name, one in value.items():
            if key == "properties":
                read[name], needs = self._within(f"{self._place}.{name}".lstrip(".")).read(one)
                self._needed += [name] if needs else []
            elif (pattern := usable_pattern(name)) is None:
                self._leave_out(key, ascii(name)[:80])
                self._takes_others = True
            else:
                read[pattern] = self._inner(one)

    def _required(self, value: Any) -> bool:
        value = _as_switch(value)
        names = value if isinstance(value, list) else []
        if isinstance(value, str) and value in self._read.get("properties", {}):
            names = [value]
        elif not isinstance(value, bool | list) and value not in (None, {}):
            self._leave_out("required")
        names = list(dict.fromkeys(one for one in [*names, *self._needed] if isinstance(one, str)))
        if names or value == []:
            self._read["required"] = names
        if self._takes_others and "additionalProperties" in self._read:
            self._read["additionalProperties"] = True
        return value is True

    def _contradiction(self) -> None:
        read, kinds = self._read, self._read.get("type")
        listed = [read["const"]] if "const" in read else read.get("enum")
        if kinds is None or listed is None or any(is_valid({"type": kinds}, value) for value in listed):
            return
        if kinds == "array" and "enum" in read and isinstance(read.get("items", {}), dict):
            read.setdefault("items", self._inner({}))["enum"] = read.pop("enum")
        else:
            names = [kinds] if isinstance(kinds, str) else kinds
            self._leave_out("type", f"none of its values is of type {' or '.join(names)}")
            del read["type"]


def _without_nullable(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("nullable") is not True and given.get("x-nullable") is not True:
        return given
    rest = {key: value for key, value in given.items() if key not in _NULLABLE}
    kinds = rest.get("type")
    if not isinstance(kinds, str | list):
        return {"anyOf": [rest, {"type": "null"}]} if rest else rest
    rest["type"] = [*(kinds.split("|") if isinstance(kinds, str) else kinds), "null"]
    return {**rest, "enum": [*rest["enum"], None]} if isinstance(rest.get("enum"), list) else rest


def _readable(key: str, value: Any) -> Any:
    if key == "pattern":
        return usable_pattern(value) if isinstance(value, str) else None
    if key == "enum":
        values = value if isinstance(value, list) else []
        return [*{json.dumps(one, sort_keys=True): one for one in values}.values()] or None
    if key in {*NAMES, *REFERENCES}:
        return value if isinstance(value, str) else None
    if key in _DATA or (key in {"exclusiveMinimum", "exclusiveMaximum"} and isinstance(value, bool)):
        return value
    if key in _TEXTS and isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = " ".join(value)
    elif isinstance(value, str) and not meta.is_valid({key: value}):
        try:
            value = _as_switch(json.loads(value.casefold()))
        except ValueError:
            return None
    is_size = key.startswith(("min", "max")) and key not in {"minimum", "maximum"}
    if is_size and isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if meta.is_valid({key: value}) and not (is_size and value > MAX_SIZE) else None


def _as_switch(value: Any) -> Any:
    return value.casefold() == "true" if isinstance(value, str) and value.casefold() in {"true", "false"} else value


def _with_definitions(root: dict[str, Any]) -> dict[str, Any]:
    components = root.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    if not isinstance(schemas, dict):
        return root
    own = root.get("$defs")
    own = own if isinstance(own, dict) else {}
    return {key: value for key, value in root.items() if key != "components"} | {"$defs": {**schemas, **own}}


def _lists_parameters_only(root: Mapping[str, Any]) -> bool:
    keywords = {"type", "properties", "$ref", "required", "additionalProperties", *DEFINITIONS, *LISTS}
    parts = [value for value in root.values() if isinstance(value, dict)]
    return len(parts) == len(root) and not keywords & root.keys() and all("type" in part for part in parts)
