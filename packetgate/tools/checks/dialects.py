"""Input schemas as servers write them, in whichever dialect, read keyword by keyword into one that can be checked.

What cannot be used is left out for that value, and named: then the server checks it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from packetgate.tools.checks.keywords import READERS, is_of
from packetgate.tools.checks.patterns import translated
from packetgate.tools.checks.references import SINGLE, relinked, take_any
from packetgate.tools.checks.satisfiable import KINDS

MAX_DEPTH = 100

_TYPES = {
    **{kind: kind for kind in KINDS},
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
"""Types that restrict nothing; every other unknown one is named."""

_LISTS = ("allOf", "anyOf", "oneOf")
_BY_NAME = ("$defs", "definitions", "dependentSchemas")
_NO_KEYWORDS = ("$schema", "$vocabulary", "nullable", "x-nullable", "discriminator", "xml", "externalDocs", "optional")
"""Read elsewhere, or of no use to who checks a call."""
_SCHEMAS = frozenset({"properties", "patternProperties", "prefixItems", *_LISTS, *_BY_NAME})
_UNTOLD = frozenset({*_NO_KEYWORDS} - {"nullable", "x-nullable"})
_OLD_NAMES = {"divisibleBy": "multipleOf", "extends": "allOf", "disallow": "not"}
_DATA = frozenset({"const", "default"})
"""Keywords whose value is data: null stands for itself there."""
_BESIDE_REFERENCES = frozenset({"$ref", "$defs", "definitions", "title", "description", "default", "examples", "$id"})


def normalised(schema: Any) -> tuple[dict[str, Any] | bool, list[str]]:
    """Return a tool's input schema in the newest draft, and what was left out or read otherwise, a phrase each."""
    dialect = schema.get("$schema") if isinstance(schema, Mapping) else None
    notes = _Notes(ignores_siblings=isinstance(dialect, str) and "draft-0" in dialect)
    whole = _whole(schema, notes)
    if isinstance(whole, dict) and isinstance(dialect, str) and "/2020-12/" in dialect:
        whole = {"$schema": dialect, **whole}
    return whole, list(dict.fromkeys(notes.changes))


@dataclass
class _Notes:
    """What is noted while the schemas of a whole are read."""

    ignores_siblings: bool
    """Whether a reference stands for all that is beside it, as in older drafts."""
    changes: list[str] = field(default_factory=list)
    opened: int = 0
    """How often something was left out: there, more is taken than the schema says."""
    gone: set[tuple[str, str]] = field(default_factory=set)


def _whole(root: Any, notes: _Notes) -> dict[str, Any] | bool:
    if isinstance(root, str):  # a schema as text
        try:
            root = json.loads(root)
        except ValueError:
            root = root.strip() or None
    if root is False:
        return False
    if root is True:
        return {"type": "object", "additionalProperties": True}
    if root is None or root in ({}, []):
        return {"type": "object"}
    if not isinstance(root, dict):
        notes.changes.append("it is no schema: any arguments are taken")
        return {"type": "object", "additionalProperties": True}
    if _lists_parameters_only(root):
        notes.changes.append("it is a list of parameters: read as its properties")
        root = {"properties": root}
    cleaned, required = _Schema(notes, "", 0).read(_with_definitions(root))
    if not isinstance(cleaned, dict):
        return cleaned
    if required is True:
        notes.changes.append("required: left out")
    whole, unresolved = relinked(cleaned)
    notes.changes += unresolved
    kind = whole.get("type")
    takes_object = kind is None or (isinstance(kind, list) and "object" in kind)
    return {**whole, "type": "object"} if takes_object else whole


class _Schema:
    """One schema within the whole, as it is read keyword by keyword."""

    def __init__(self, notes: _Notes, place: str, depth: int) -> None:
        self._notes = notes
        self._place = place
        self._depth = depth
        self._read: dict[str, Any] = {}
        self._needed: list[str] = []
        """Properties that say themselves that they must be given."""
        self._one_way: list[Any] | None = None
        """Ways of a `oneOf` of which something was left out: several may fit."""
        self._rest: Any = None
        """What older drafts say of the items after those listed one by one."""
        self._is_open = False
        """Whether a property may be one that a pattern left out allows."""

    def read(self, given: Any) -> tuple[dict[str, Any] | bool, bool | None]:
        """Return a schema, and whether what it describes must be given, where it says that itself."""
        if isinstance(given, bool):
            return given, None
        if isinstance(given, str) and (kind := _TYPES.get(given.casefold())):
            given = {"type": kind}
        if not isinstance(given, dict) or self._depth > MAX_DEPTH:
            if given is not None:
                self._leave_out("its schema", "it is none" if self._depth <= MAX_DEPTH else "nested too deeply")
            return {}, None
        if isinstance(given.get("$ref"), str) and self._notes.ignores_siblings:
            given = {key: value for key, value in given.items() if key in _BESIDE_REFERENCES}
        for key, value in given.items():
            if value is not None or key in _DATA:
                self._keyword(_OLD_NAMES.get(key, key), value)
        if self._one_way:
            take_any(self._read, self._one_way)
        needed = self._required(given.get("required"))
        _exclude_bounds(self._read)
        if "prefixItems" in self._read and self._rest is not None:
            self._single("items", self._rest)
        self._values()
        nullable = given.get("nullable") is True or given.get("x-nullable") is True
        read = _nullable(self._read) if nullable else self._read
        self._name_changes(given, read)
        return read, needed

    def _inner(self, given: Any, place: str | None = None) -> dict[str, Any] | bool:
        return self._within(self._place if place is None else place).read(given)[0]

    def _within(self, place: str) -> "_Schema":
        return _Schema(self._notes, place, self._depth + 1)

    def _leave_out(self, keyword: str, why: str = "") -> None:
        self._notes.opened += 1
        self._notes.gone.add((self._place, keyword))
        self._change(f"{keyword} left out{f' ({why})' if why else ''}")

    def _change(self, what: str) -> None:
        self._notes.changes.append(f"{self._place or 'the arguments'}: {what}")

    def _name_changes(self, given: Mapping[str, Any], read: Mapping[str, Any]) -> None:
        """Name the keywords that are read otherwise than they are written, beside those that are left out."""
        for key, value in given.items():
            same = key in read and (read[key] == value or key in SINGLE or key in _SCHEMAS)
            if same or key in _UNTOLD or (self._place, key) in self._notes.gone:
                continue
            now = _short(read[key]) if key in read else "absent" if value is None else "the newest draft says it"
            self._change(f"{key} {_short(value)} read as {now}")

    def _keyword(self, key: str, value: Any) -> None:
        if key in _NO_KEYWORDS or key == "required":
            return
        if key in _STRUCTURE:
            _STRUCTURE[key](self, key, value)
        elif key in SINGLE:
            self._single(key, value)
        else:
            self._plain(key, value)

    def _plain(self, key: str, value: Any) -> None:
        reader = next((read for keys, read in READERS if key in keys), None)
        if key == "pattern":
            read = translated(value) if isinstance(value, str) else None
            why = ascii(value)[:80]
        elif reader is None:
            self._read[key] = value
            return
        else:
            read, why = reader(value), json.dumps(value)[:60]
        if read is None:
            self._leave_out(key, why)
        else:
            self._read[key] = read

    def _single(self, key: str, value: Any) -> None:
        if isinstance(value, str) and value.casefold() in {"true", "false"}:
            value = value.casefold() == "true"
        if not isinstance(value, bool | dict) and not (isinstance(value, str) and value.casefold() in _TYPES):
            self._leave_out(key)
            return
        known = self._notes.opened
        read = self._inner(value, f"{self._place}[]" if key == "items" else None)
        if key in {"not", "if"} and self._notes.opened > known:
            self._leave_out(key, "part of it cannot be used")  # what takes more there would refuse more
        else:
            self._read[key] = read

    def _items(self, _key: str, value: Any) -> None:
        if not isinstance(value, list):
            self._single("items", value)
        elif value:
            self._read["prefixItems"] = [self._inner(one, f"{self._place}[{at}]") for at, one in enumerate(value)]

    def _additional_items(self, _key: str, value: Any) -> None:
        self._rest = value

    def _ways(self, key: str, value: Any) -> None:
        ways = [value] if isinstance(value, dict) else value
        if isinstance(ways, list) and ways:
            known = self._notes.opened
            read = [self._inner(one) for one in ways]
            if key == "oneOf" and self._notes.opened > known:
                self._one_way = read
            else:
                self._read[key] = read
        elif ways != []:
            self._leave_out(key)

    def _definitions(self, key: str, value: Any) -> None:
        if isinstance(value, dict):
            self._read[key] = {name: self._inner(one, name) for name, one in value.items()}
        else:
            self._leave_out(key)

    def _type(self, _key: str, value: Any) -> None:
        names = value.split("|") if isinstance(value, str) else value if isinstance(value, list) else [value]
        kinds: list[str] = []
        ways: list[Any] = []
        for name in names:
            word = name.strip().casefold() if isinstance(name, str) else None
            if isinstance(name, dict):  # of draft 3
                ways.append(self._inner(name))
            elif word in _ANYTHING:
                return
            elif word is None or word not in _TYPES:
                self._leave_out("type", json.dumps(name)[:60])
                return
            else:
                kinds.append(_TYPES[word])
        kinds = list(dict.fromkeys(kinds))
        if ways:
            self._read["anyOf"] = [*ways, *({"type": kind} for kind in kinds)]
        elif kinds:
            self._read["type"] = kinds[0] if len(kinds) == 1 else kinds

    def _dependencies(self, _key: str, value: Any) -> None:
        for name, needs in value.items() if isinstance(value, dict) else ():
            if isinstance(needs, str | list):
                names = [one for one in ([needs] if isinstance(needs, str) else needs) if isinstance(one, str)]
                self._read.setdefault("dependentRequired", {})[name] = list(dict.fromkeys(names))
            else:
                self._read.setdefault("dependentSchemas", {})[name] = self._inner(needs)

    def _properties(self, _key: str, value: Any) -> None:
        if isinstance(value, list) and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in value):
            value = {one["name"]: {key: said for key, said in one.items() if key != "name"} for one in value}
        if not isinstance(value, dict):
            self._leave_out("properties")
            return
        self._read["properties"] = {}
        for name, one in value.items():
            read, needs = self._within(f"{self._place}.{name}".lstrip(".")).read(one)
            self._read["properties"][name] = read
            self._needed += [name] if needs else []

    def _pattern_properties(self, _key: str, value: Any) -> None:
        if not isinstance(value, dict):
            self._leave_out("patternProperties")
            return
        self._read["patternProperties"] = {}
        for pattern, one in value.items():
            if (read := translated(pattern)) is None:
                self._leave_out("patternProperties", ascii(pattern)[:80])
                self._is_open = True
            else:
                self._read["patternProperties"][read] = self._inner(one)

    def _required(self, value: Any) -> bool | None:
        """Read which properties must be given; return whether the value itself must be, as older drafts say it."""
        if isinstance(value, str) and value.casefold() in {"true", "false"}:
            value = value.casefold() == "true"
        own: list[Any] = value if isinstance(value, list) else []
        if isinstance(value, str) and value in self._read.get("properties", {}):
            own = [value]
        elif not isinstance(value, bool | list) and value not in (None, {}):
            self._leave_out("required")
        names = list(dict.fromkeys(one for one in [*own, *self._needed] if isinstance(one, str)))
        if names or value == []:
            self._read["required"] = names
        if self._is_open and self._read.get("additionalProperties") is not None:
            self._read["additionalProperties"] = True
        return value if isinstance(value, bool) else None

    def _values(self) -> None:
        """Take out of a list of values what contradicts its type: the values are what was meant."""
        mine, kinds = self._read, self._read.get("type")
        listed = [mine["const"]] if "const" in mine else mine.get("enum")
        if kinds is None or listed is None:
            return
        names = [kinds] if isinstance(kinds, str) else kinds
        if any(is_of(value, name) for value in listed for name in names):
            return
        if names == ["array"] and "enum" in mine and isinstance(mine.get("items", {}), dict):
            mine["items"] = {**mine.get("items", {}), "enum": mine.pop("enum")}
            self._change("enum read as that of its items")
        else:
            self._leave_out("type", f"none of its values is of type {' or '.join(names)}")
            mine.pop("type")


_STRUCTURE: Mapping[str, Callable[[_Schema, str, Any], None]] = {
    "type": _Schema._type,
    "properties": _Schema._properties,
    "patternProperties": _Schema._pattern_properties,
    "dependencies": _Schema._dependencies,
    "items": _Schema._items,
    "prefixItems": _Schema._items,
    "additionalItems": _Schema._additional_items,
    **dict.fromkeys(_LISTS, _Schema._ways),
    **dict.fromkeys(_BY_NAME, _Schema._definitions),
}


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _exclude_bounds(mine: dict[str, Any]) -> None:
    """Read bounds that are excluded as draft 4 and OpenAPI say it."""
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(mine.get(exclusive), bool) and mine.pop(exclusive) and limit in mine:
            mine[exclusive] = mine.pop(limit)


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that takes null as well."""
    kinds = schema.get("type")
    if kinds is None:
        return {"anyOf": [schema, {"type": "null"}]} if schema else schema
    schema["type"] = list(dict.fromkeys([*([kinds] if isinstance(kinds, str) else kinds), "null"]))
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _with_definitions(root: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose definitions stand where JSON Schema keeps them, rather than OpenAPI."""
    components = root.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    if not isinstance(schemas, dict):
        return root
    own = root.get("$defs")
    own = own if isinstance(own, dict) else {}
    return {key: value for key, value in root.items() if key != "components"} | {"$defs": {**schemas, **own}}


def _lists_parameters_only(root: Mapping[str, Any]) -> bool:
    """Whether a schema is an object of parameters by name, without the `properties` around it."""
    keywords = {"type", "properties", "$ref", "required", "$defs", "definitions", "additionalProperties", *_LISTS}
    parts = [value for value in root.values() if isinstance(value, dict)]
    return len(parts) == len(root) and not keywords & root.keys() and all("type" in part for part in parts)
