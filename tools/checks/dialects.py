"""Input schemas as servers write them, in whichever dialect, read keyword by keyword into one that can be checked.

What cannot be used is left out for that value, and named: then the server checks it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tools.checks.keywords import READERS, is_of
from tools.checks.patterns import translated
from tools.checks.references import SINGLE, relinked, take_any
from tools.checks.satisfiable import KINDS

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
    reading = _Reading(schema)
    return reading.whole(), list(dict.fromkeys(reading.changes))


class _Reading:
    def __init__(self, schema: Any) -> None:
        self.changes: list[str] = []
        self._opened = 0
        """How often something was left out: there, more is taken than the schema says."""
        self._gone: set[tuple[str, str]] = set()
        self._root = schema
        dialect = schema.get("$schema") if isinstance(schema, Mapping) else None
        self._ignores_siblings = isinstance(dialect, str) and "draft-0" in dialect
        self._named = {"$schema": dialect} if isinstance(dialect, str) and "/2020-12/" in dialect else {}

    def whole(self) -> dict[str, Any] | bool:
        root = self._root
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
            self.changes.append("it is no schema: any arguments are taken")
            return {"type": "object", "additionalProperties": True}
        if _lists_parameters_only(root):
            self.changes.append("it is a list of parameters: read as its properties")
            root = {"properties": root}
        root = _with_definitions(root)
        cleaned, required = self._schema(root, "", 0)
        if not isinstance(cleaned, dict):
            return cleaned
        if required is True:
            self.changes.append("required: left out")
        whole, unresolved = relinked(cleaned)
        self.changes += unresolved
        return {**self._named, **self._of_an_object(whole)}

    def _of_an_object(self, whole: dict[str, Any]) -> dict[str, Any]:
        """Return a schema that says itself that arguments are an object."""
        kind = whole.get("type")
        if kind is None or (isinstance(kind, list) and "object" in kind):
            return {**whole, "type": "object"}
        return whole

    def _left_out(self, place: str, keyword: str, why: str = "") -> None:
        self._opened += 1
        self._gone.add((place, keyword))
        self.changes.append(f"{place or 'the arguments'}: {keyword} left out{f' ({why})' if why else ''}")

    def _schema(self, given: Any, place: str, depth: int) -> tuple[dict[str, Any] | bool, bool | None]:
        """Return a schema, and whether what it describes must be given, where it says that itself."""
        if isinstance(given, bool):
            return given, None
        if isinstance(given, str) and (kind := _TYPES.get(given.casefold())):
            given = {"type": kind}
        if not isinstance(given, dict) or depth > MAX_DEPTH:
            if given is not None:
                self._left_out(place, "its schema", "it is none" if depth <= MAX_DEPTH else "nested too deeply")
            return {}, None
        if isinstance(given.get("$ref"), str) and self._ignores_siblings:
            given = {key: value for key, value in given.items() if key in _BESIDE_REFERENCES}
        mine: dict[str, Any] = {}
        for key, value in given.items():
            if value is None and key not in _DATA:
                continue
            self._keyword(mine, _OLD_NAMES.get(key, key), value, place, depth)
        if ways := mine.pop("_ways", None):
            take_any(mine, ways)
        needed = self._required(mine, given.get("required"), place)
        _exclude_bounds(mine)
        self._rest_of_items(mine, place, depth)
        self._values(mine, place)
        read = _nullable(mine) if given.get("nullable") is True or given.get("x-nullable") is True else mine
        self._name_changes(given, read, place)
        return read, needed

    def _name_changes(self, given: Mapping[str, Any], read: Mapping[str, Any], place: str) -> None:
        """Name the keywords that are read otherwise than they are written, beside those that are left out."""
        where = place or "the arguments"
        for key, value in given.items():
            same = key in read and (read[key] == value or key in SINGLE or key in _SCHEMAS)
            if same or key in _UNTOLD or (place, key) in self._gone:
                continue
            now = _short(read[key]) if key in read else "absent" if value is None else "the newest draft says it"
            self.changes.append(f"{where}: {key} {_short(value)} read as {now}")

    def _keyword(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        if key in _NO_KEYWORDS or key == "required":
            return
        if key in _STRUCTURE:
            _STRUCTURE[key](self, mine, key, value, place, depth)
        elif key in SINGLE:
            self._single(mine, key, value, place, depth)
        else:
            self._plain(mine, key, value, place)

    def _items(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        if not isinstance(value, list):
            self._single(mine, "items", value, place, depth)
        elif value:
            mine["prefixItems"] = [self._schema(one, f"{place}[{at}]", depth + 1)[0] for at, one in enumerate(value)]

    def _additional_items(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        mine["_rest"] = value

    def _ways(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        ways = [value] if isinstance(value, dict) else value
        if isinstance(ways, list) and ways:
            known = self._opened
            read = [self._schema(one, place, depth + 1)[0] for one in ways]
            mine["_ways" if key == "oneOf" and self._opened > known else key] = read
        elif ways != []:
            self._left_out(place, key)

    def _definitions(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        if isinstance(value, dict):
            mine[key] = {name: self._schema(one, name, depth + 1)[0] for name, one in value.items()}
        else:
            self._left_out(place, key)

    def _plain(self, mine: dict[str, Any], key: str, value: Any, place: str) -> None:
        reader = next((read for keys, read in READERS if key in keys), None)
        if key == "pattern":
            read = translated(value) if isinstance(value, str) else None
            why = ascii(value)[:80]
        elif reader is None:
            mine[key] = value
            return
        else:
            read, why = reader(value), json.dumps(value)[:60]
        if read is None:
            self._left_out(place, key, why)
        else:
            mine[key] = read

    def _single(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        if isinstance(value, str) and value.casefold() in {"true", "false"}:
            value = value.casefold() == "true"
        if not isinstance(value, bool | dict) and not (isinstance(value, str) and value.casefold() in _TYPES):
            self._left_out(place, key)
            return
        inner = f"{place}[]" if key == "items" else place
        known = self._opened
        read = self._schema(value, inner, depth + 1)[0]
        if key in {"not", "if"} and self._opened > known:
            self._left_out(place, key, "part of it cannot be used")  # what takes more there would refuse more
        else:
            mine[key] = read

    def _type(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        names = value.split("|") if isinstance(value, str) else value if isinstance(value, list) else [value]
        kinds: list[str] = []
        ways: list[Any] = []
        for name in names:
            word = name.strip().casefold() if isinstance(name, str) else None
            if isinstance(name, dict):  # of draft 3
                ways.append(self._schema(name, place, depth + 1)[0])
            elif word in _ANYTHING:
                return
            elif word is None or word not in _TYPES:
                self._left_out(place, "type", json.dumps(name)[:60])
                return
            else:
                kinds.append(_TYPES[word])
        kinds = list(dict.fromkeys(kinds))
        if ways:
            mine["anyOf"] = [*ways, *({"type": kind} for kind in kinds)]
        elif kinds:
            mine["type"] = kinds[0] if len(kinds) == 1 else kinds

    def _dependencies(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        for name, needs in value.items() if isinstance(value, dict) else ():
            if isinstance(needs, str | list):
                names = [one for one in ([needs] if isinstance(needs, str) else needs) if isinstance(one, str)]
                mine.setdefault("dependentRequired", {})[name] = list(dict.fromkeys(names))
            else:
                mine.setdefault("dependentSchemas", {})[name] = self._schema(needs, place, depth + 1)[0]

    def _properties(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        if isinstance(value, list) and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in value):
            value = {one["name"]: {key: said for key, said in one.items() if key != "name"} for one in value}
        if not isinstance(value, dict):
            self._left_out(place, "properties")
            return
        mine["properties"], needed = {}, []
        for name, one in value.items():
            mine["properties"][name], needs = self._schema(one, f"{place}.{name}".lstrip("."), depth + 1)
            needed += [name] if needs else []
        if needed:
            mine["_needed"] = needed

    def _pattern_properties(self, mine: dict[str, Any], key: str, value: Any, place: str, depth: int) -> None:
        if not isinstance(value, dict):
            self._left_out(place, "patternProperties")
            return
        mine["patternProperties"] = {}
        for pattern, one in value.items():
            if (read := translated(pattern)) is None:
                self._left_out(place, "patternProperties", ascii(pattern)[:80])
                mine["_open"] = True
            else:
                mine["patternProperties"][read] = self._schema(one, place, depth + 1)[0]

    def _required(self, mine: dict[str, Any], value: Any, place: str) -> bool | None:
        """Read which properties must be given; return whether the value itself must be, as older drafts say it."""
        needed = mine.pop("_needed", [])
        if isinstance(value, str) and value.casefold() in {"true", "false"}:
            value = value.casefold() == "true"
        if isinstance(value, bool):
            own: list[Any] = []
        elif isinstance(value, str) and value in mine.get("properties", {}):
            own = [value]
        elif isinstance(value, list):
            own = value
        else:
            own = []
            if value not in (None, {}):
                self._left_out(place, "required")
        names = list(dict.fromkeys(one for one in [*own, *needed] if isinstance(one, str)))
        if names or own == value == []:
            mine["required"] = names
        if mine.pop("_open", False) and mine.get("additionalProperties") is not None:
            mine["additionalProperties"] = True  # a property may be one that a pattern left out allows
        return value if isinstance(value, bool) else None

    def _rest_of_items(self, mine: dict[str, Any], place: str, depth: int) -> None:
        """Read what older drafts say of the items after those listed one by one."""
        rest = mine.pop("_rest", None)
        if "prefixItems" in mine and rest is not None:
            self._single(mine, "items", rest, place, depth)

    def _values(self, mine: dict[str, Any], place: str) -> None:
        """Take out of a list of values what contradicts its type: the values are what was meant."""
        kinds = mine.get("type")
        listed = [mine["const"]] if "const" in mine else mine.get("enum")
        if kinds is None or listed is None:
            return
        names = [kinds] if isinstance(kinds, str) else kinds
        if any(is_of(value, name) for value in listed for name in names):
            return
        if names == ["array"] and "enum" in mine and isinstance(mine.get("items", {}), dict):
            mine["items"] = {**mine.get("items", {}), "enum": mine.pop("enum")}
            self.changes.append(f"{place}: enum read as that of its items")
        else:
            self._left_out(place, "type", f"none of its values is of type {' or '.join(names)}")
            mine.pop("type")


_STRUCTURE: Mapping[str, Callable[[_Reading, dict[str, Any], str, Any, str, int], None]] = {
    "type": _Reading._type,
    "properties": _Reading._properties,
    "patternProperties": _Reading._pattern_properties,
    "dependencies": _Reading._dependencies,
    "items": _Reading._items,
    "prefixItems": _Reading._items,
    "additionalItems": _Reading._additional_items,
    **dict.fromkeys(_LISTS, _Reading._ways),
    **dict.fromkeys(_BY_NAME, _Reading._definitions),
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
