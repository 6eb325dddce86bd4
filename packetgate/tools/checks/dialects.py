"""Normalize the input schemas of servers, in any dialect, to the newest draft.

Keywords that cannot be used are left out and reported: the server checks them. Where leaving out something would make
the schema refuse more (inside `not`, `if` and `oneOf`), the whole keyword is left out or relaxed.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

from jsonschema_rs import is_valid, meta

from packetgate.tools.checks.validation import usable_pattern

MAX_PATH = 200
"""Longest path to a part of a schema that is read."""
MAX_REFERENCES = 100
"""Most references that are followed to detect a cycle."""
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
    | {"externalDocs", "optional", "required", "additionalItems", *_NULLABLE}
)
"""Keywords that are irrelevant to validation, or handled elsewhere."""
_DATA = frozenset({"const", "default"})
"""Keywords whose value may be null."""
_TEXTS = frozenset({"title", "description", "$comment", "format", "contentEncoding", "contentMediaType"})
_SINGLE = frozenset("items additionalProperties not if then else contains propertyNames contentSchema".split())
"""Keywords whose value is a schema."""
_UNSUPPORTED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""Keywords that can keep a validator from terminating."""
_DEFINITIONS = ("$defs", "definitions")
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_BESIDE_REFERENCES = frozenset({"$ref", *_DEFINITIONS, "title", "description", "default", "examples"})
"""Keywords that older drafts read beside a reference."""
_ABOUT = frozenset({"title", "description", "type"})
_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas apply to the same value."""
_SAFE = "~$&'()*+,;=:@!-._"

_Path = tuple[str | int, ...]
_Schema = dict[str, Any]


def normalize_schema(schema: Any) -> tuple[dict[str, Any] | bool, list[str]]:
    """Return an input schema in the newest draft, and a phrase for each keyword that was left out."""
    if schema is False:
        return False, []
    if schema is None or schema in ({}, []):
        return {"type": "object"}, []
    if not isinstance(schema, dict):
        changes = [] if schema is True else ["it is not a schema: any arguments are accepted"]
        return {"type": "object", "additionalProperties": True}, changes
    changes = []
    normalizer = _Normalizer(_with_definitions(schema), changes)
    read = normalizer.schema(normalizer.root, ())
    if isinstance(read, dict) and "object" in read.get("type", "object"):
        read["type"] = "object"
    dialect = schema.get("$schema")
    if isinstance(read, dict) and isinstance(dialect, str) and "/2020-12/" in dialect:
        read = {"$schema": dialect, **read}  # a client must see the draft that its server names
    return read, list(dict.fromkeys(changes))


class _Normalizer:
    def __init__(self, root: _Schema, changes: list[str]) -> None:
        self.changes = changes
        self.root = root
        self._ignores_siblings = "draft-0" in str(root.get("$schema"))
        self._definitions: dict[str, list[_Path]] = {}
        for name, path in _definitions_in(root, ()):
            self._definitions.setdefault(name, []).append(path)
        self._inline_root()

    def schema(self, given: Any, path: _Path) -> _Schema | bool:
        if isinstance(given, bool):
            return given
        if not isinstance(given, dict) or len(path) > MAX_PATH:
            if given is not None:
                self._leave_out(path, "its schema", "nested too deeply" if len(path) > MAX_PATH else "it is none")
            return {}
        if self._ignores_siblings and isinstance(given.get("$ref"), str):
            given = {key: value for key, value in given.items() if key in _BESIDE_REFERENCES}
        given = _without_nullable(given)
        read: _Schema = {}
        for key, value in given.items():
            if (value is not None or key in _DATA) and key not in _IGNORED:
                self._keyword(read, key, value, path)
        self._required(read, given, path)
        for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(read.get(exclusive), bool) and read.pop(exclusive) and limit in read:
                read[exclusive] = read.pop(limit)
        if "prefixItems" in read and given.get("additionalItems") is not None:
            self._single(read, "items", given["additionalItems"], path)
        self._contradiction(read, path)
        return read

    def _keyword(self, read: _Schema, key: str, value: Any, path: _Path) -> None:
        match key:
            case "type":
                self._type(read, value, path)
            case "properties" | "patternProperties":
                self._properties(read, key, value, path)
            case "items" | "prefixItems" if isinstance(value, list):
                items = [self.schema(one, (*path, "prefixItems", at)) for at, one in enumerate(value)]
                read |= {"prefixItems": items} if items else {}
            case "allOf" | "anyOf" | "oneOf":
                self._options(read, key, value, path)
            case "$defs" | "definitions" | "dependentSchemas" if isinstance(value, dict):
                read[key] = {name: self.schema(one, (*path, key, name)) for name, one in value.items()}
            case _ if key in _REFERENCES:
                self._reference(read, value, path)
            case _ if key in _SINGLE or key == "prefixItems":
                self._single(read, "items" if key == "prefixItems" else key, value, path)
            case _ if key in _UNSUPPORTED:
                self._leave_out(path, key)
            case _:
                readable = _readable(key, value)
                if readable is None and value is not None:
                    self._leave_out(path, key, ascii(value)[:80] if key == "pattern" else json.dumps(value)[:60])
                else:
                    read[key] = readable

    def _leave_out(self, path: _Path, keyword: str, why: str = "") -> None:
        self.changes.append(f"{_place(path)}: {keyword} left out{f' ({why})' if why else ''}")

    def _single(self, read: _Schema, key: str, value: Any, path: _Path) -> None:
        value, before = _as_switch(value), len(self.changes)
        if not isinstance(value, bool | dict):
            self._leave_out(path, key)
            return
        part = self.schema(value, (*path, key))
        if key in {"not", "if"} and len(self.changes) > before:
            self._leave_out(path, key, "part of it cannot be used")
        else:
            read[key] = part

    def _options(self, read: _Schema, key: str, value: Any, path: _Path) -> None:
        options, before = [value] if isinstance(value, dict) else value, len(self.changes)
        if not isinstance(options, list):
            self._leave_out(path, key)
        elif options:
            parts = [self.schema(one, (*path, key, at)) for at, one in enumerate(options)]
            key = "anyOf" if key == "oneOf" and len(self.changes) > before else key
            if key == "anyOf" and key in read:
                key, parts = "allOf", [{key: parts}]
            read[key] = [*read.get(key, ()), *parts]

    def _type(self, read: _Schema, value: Any, path: _Path) -> None:
        names = value.split("|") if isinstance(value, str) else value if isinstance(value, list) else [value]
        words = [name.strip().casefold() if isinstance(name, str) else "?" for name in names]
        if not _ANYTHING.isdisjoint(words):
            return
        if not {*words} <= _TYPES.keys():
            self._leave_out(path, "type", json.dumps(value)[:60])
            return
        kinds = list(dict.fromkeys(_TYPES[word] for word in words))
        if kinds:
            read["type"] = kinds[0] if len(kinds) == 1 else kinds

    def _properties(self, read: _Schema, key: str, value: Any, path: _Path) -> None:
        if not isinstance(value, dict):
            self._leave_out(path, key)
            return
        parts = read[key] = {}
        for name, one in value.items():
            pattern = usable_pattern(name) if key == "patternProperties" else name
            if pattern is None:
                self._leave_out(path, key, ascii(name)[:80])
            else:
                parts[pattern] = self.schema(one, (*path, key, name))

    def _required(self, read: _Schema, given: _Schema, path: _Path) -> None:
        value, properties = _as_switch(given.get("required")), given.get("properties")
        names = value if isinstance(value, list) else []
        if isinstance(value, str) and value in read.get("properties", {}):
            names = [value]
        elif not isinstance(value, bool | list) and value not in (None, {}):
            self._leave_out(path, "required")
        if isinstance(properties, dict):
            names = [*names, *(name for name, one in properties.items() if _is_required(one))]
        names = list(dict.fromkeys(one for one in names if isinstance(one, str)))
        if names or value == []:
            read["required"] = names
        if value is True and not path:
            self._leave_out(path, "required")
        patterns = given.get("patternProperties")
        if isinstance(patterns, dict) and len(read["patternProperties"]) < len(patterns):
            read |= {"additionalProperties": True} if "additionalProperties" in read else {}

    def _contradiction(self, read: _Schema, path: _Path) -> None:
        kinds = read.get("type")
        listed = [read["const"]] if "const" in read else read.get("enum")
        if kinds is None or listed is None or any(is_valid({"type": kinds}, value) for value in listed):
            return
        if kinds == "array" and "enum" in read and isinstance(read.get("items", {}), dict):
            read.setdefault("items", {})["enum"] = read.pop("enum")
        else:
            names = [kinds] if isinstance(kinds, str) else kinds
            self._leave_out(path, "type", f"none of its values is of type {' or '.join(names)}")
            del read["type"]

    def _reference(self, read: _Schema, value: Any, path: _Path) -> None:
        target = self._target(value, path)
        if target is None or self._leads_back(path, target):
            why = "has no target" if target is None else "refers to itself"
            self._leave_out(path, "$ref", f"{ascii(value)[:80]} {why}")
        elif "$ref" in read:
            read["allOf"] = [*read.get("allOf", ()), {"$ref": _pointer(target)}]
        else:
            read["$ref"] = _pointer(target)

    def _target(self, reference: Any, path: _Path) -> _Path | None:
        """Return the path of a reference's target, else of the nearest definition with its name, or None."""
        if not isinstance(reference, str):
            return None
        address, _, fragment = reference.partition("#")
        if address:
            return None if "/" in address or fragment else self._nearest_definition(address, path)
        if not fragment:
            return ()
        steps = [step.replace("~1", "/").replace("~0", "~") for step in unquote(fragment).split("/")]
        followed = self._followed(steps[1:]) if fragment.startswith("/") else None
        return self._nearest_definition(steps[-1], path) if followed is None else followed

    def _followed(self, steps: list[str]) -> _Path | None:
        at: Any = self.root
        path: list[str | int] = []
        for step in steps:
            try:
                key = int(step) if isinstance(at, list) else step
                at = at[key]
            except (LookupError, TypeError, ValueError):
                return None
            path.append("prefixItems" if key == "items" and isinstance(at, list) else key)
        return tuple(path) if isinstance(at, dict | bool) else None

    def _nearest_definition(self, name: str, path: _Path) -> _Path | None:
        shared = {one: sum(a == b for a, b in zip(one, path, strict=False)) for one in self._definitions.get(name, ())}
        return max(shared, key=lambda one: shared[one], default=None)

    def _leads_back(self, path: _Path, target: _Path) -> bool:
        """Whether a reference leads back to itself without descending into the value."""
        for _ in range(MAX_REFERENCES):
            if path[: len(target)] == target and _is_same_value(path[len(target) :]):
                return True
            schema = self._at(target)
            following = self._target(schema.get("$ref"), target) if isinstance(schema, dict) else None
            if following is None:
                return False
            target = following
        return True

    def _at(self, path: _Path) -> Any:
        schema: Any = self.root
        for step in path:
            schema = schema["items" if step == "prefixItems" and step not in schema else step]
        return schema

    def _inline_root(self) -> None:
        """Replace a schema that is only a reference by its target."""
        for _ in range(len(self._definitions)):
            path = self._target(self.root.get("$ref"), ())
            target, rest = self._at(path or ()), {key: value for key, value in self.root.items() if key != "$ref"}
            is_extended = bool({"properties", "additionalProperties"} & self.root.keys())
            if not path or not isinstance(target, dict) or is_extended or target.keys() & rest.keys() - _ABOUT:
                return
            self.root = {**target, **rest}


def _definitions_in(value: Any, path: _Path) -> Iterator[tuple[str, _Path]]:
    if len(path) > MAX_PATH:
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key in _DEFINITIONS and isinstance(inner, dict):
            yield from ((name, (*path, key, name)) for name in inner)
        yield from _definitions_in(inner, (*path, "prefixItems" if key == "items" and isinstance(inner, list) else key))


def _is_same_value(path: _Path) -> bool:
    steps = zip(("", *path), path, strict=False)
    return all(isinstance(step, int) or step in _SAME_VALUE or before == "dependentSchemas" for before, step in steps)


def _place(path: _Path) -> str:
    """Return the place of a schema for a message, such as `user.names[]`."""
    place = ""
    for before, step in zip(("", *path), path, strict=False):
        if before in {"properties", "patternProperties"}:
            place = f"{place}.{step}".lstrip(".")
        elif before in {*_DEFINITIONS, "dependentSchemas"}:
            place = str(step)
        elif step == "items":
            place += "[]"
        elif before == "prefixItems":
            place += f"[{step}]"
    return place or "the arguments"


def _pointer(path: _Path) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "".join(["#", *(f"/{quote(step, safe=_SAFE)}" for step in steps)])


def _without_nullable(given: _Schema) -> _Schema:
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


def _is_required(schema: Any) -> bool:
    return isinstance(schema, dict) and _as_switch(schema.get("required")) is True


def _with_definitions(root: _Schema) -> _Schema:
    """Return a schema with OpenAPI's `components.schemas` as definitions."""
    components = root.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    if not isinstance(schemas, dict):
        return root
    own = root.get("$defs")
    definitions = {**schemas, **(own if isinstance(own, dict) else {})}
    return {key: value for key, value in root.items() if key != "components"} | {"$defs": definitions}
