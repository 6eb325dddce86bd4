"""Resolve the references of a schema to pointers into the schema."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE = tuple(
    "items additionalProperties not if then else contains propertyNames contentSchema unevaluatedProperties"
    " unevaluatedItems".split()
)
DEFINITIONS = ("$defs", "definitions")
BY_NAME = ("properties", "patternProperties", "dependentSchemas", *DEFINITIONS)
NAMES = ("$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_OF_THE_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})

_SAFE = "~$&'()*+,;=:@!-._"

Path = tuple[str | int, ...]


def relinked(root: dict[str, Any], widened: set[int], places: Mapping[int, str]) -> tuple[dict[str, Any], list[str]]:
    """Return a schema whose references are pointers, and one phrase for each reference that was left out.

    A definition that is not at the given place is found by its name. A schema that is only a reference is replaced by
    its target. If a part of a `not` or `if` was left out, so is the whole; a `oneOf` becomes an `anyOf`: otherwise a
    schema that accepts more inside would accept less outside.

    Args:
        root: a schema without shared parts; it is modified.
        widened: ids of the inner schemas of which something was left out.
        places: names of the places of the inner schemas, by id.
    """
    changes = _widen(root, widened, places)
    links = _Links(root, places)
    links.rewrite(widened)
    changes += [*links.changes, *_widen(root, widened, places)]
    for _ in range(len(links.definitions) + 1):
        if (target := _only_reference(root)) is None:
            break
        root = target
    return root, changes


class _Links:
    def __init__(self, root: dict[str, Any], places: Mapping[int, str]) -> None:
        self._root = root
        self._places = places
        self._schemas = dict(_walked(root, ()))
        self._address = str(root.get("$id", root.get("id", ""))).rstrip("#")
        self.definitions: dict[str, list[Path]] = {}
        self.changes: list[str] = []
        for path, schema in self._schemas.items():
            for key in DEFINITIONS:
                for name in schema.get(key, ()):
                    self.definitions.setdefault(name, []).append((*path, key, name))
        self._targets = {
            path: {key: self._target(path, schema[key]) for key in REFERENCES if key in schema}
            for path, schema in self._schemas.items()
        }

    def rewrite(self, widened: set[int]) -> None:
        circular = self._circular()
        for path, schema in self._schemas.items():
            references = {key: schema.pop(key) for key in self._targets[path]}
            for key in NAMES:
                schema.pop(key, None)
            for key, reference in references.items():
                target = self._targets[path][key]
                if target is None or (path, key) in circular:
                    widened.add(id(schema))
                    why = "leads nowhere in it" if target is None else "leads back to itself"
                    self.changes.append(f"{self._places[id(schema)]}: $ref left out ({ascii(reference)[:80]} {why})")
                    continue
                pointer = _pointer(target)
                if "$ref" in schema:
                    schema["allOf"] = [*schema.get("allOf", ()), {"$ref": pointer}]
                else:
                    schema["$ref"] = pointer

    def _circular(self) -> set[tuple[Path, str]]:
        inner: dict[Path, list[tuple[Path, str]]] = {path: [] for path in self._schemas}
        for path in inner:
            steps = next((count for count in (1, 2) if path[:-count] in inner), 0) if path else 0
            if steps and path[-steps] in _OF_THE_SAME_VALUE:
                inner[path[:-steps]].append((path, ""))
            inner[path] += [(target, key) for key, target in self._targets[path].items() if target in inner]
        circular: set[tuple[Path, str]] = set()
        seen: set[Path] = set()
        for start in self._schemas:
            if start in seen:
                continue
            seen.add(start)
            open_, way = {start}, [(start, iter(inner[start]))]
            while way:
                at, following = way[-1]
                for there, key in following:
                    if there in open_:
                        circular.add((at, key))
                    elif there not in seen:
                        seen.add(there)
                        open_.add(there)
                        way.append((there, iter(inner[there])))
                        break
                else:
                    open_.discard(way.pop()[0])
        return circular

    def _target(self, path: Path, reference: str) -> Path | None:
        address, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        if address not in {"", self._address}:
            return None if "/" in address or fragment else self._named(path, address)
        if not fragment.startswith("/"):
            return self._named(path, fragment) if fragment else ()
        steps = [step.replace("~1", "/").replace("~0", "~") for step in fragment.split("/")[1:]]
        there = self._followed(steps)
        return self._named(path, steps[-1]) if there is None and len(steps) > 1 else there

    def _followed(self, steps: list[str]) -> Path | None:
        at: Any = self._root
        path: list[str | int] = []
        for step in steps:
            old_tuple = step == "items" and isinstance(at, dict) and "items" not in at
            key = int(step) if isinstance(at, list) and step.isdecimal() else "prefixItems" if old_tuple else step
            try:
                at = at[key]
            except (KeyError, IndexError, TypeError):
                return None
            path.append(key)
        return tuple(path) if isinstance(at, dict | bool) else None

    def _named(self, path: Path, name: str) -> Path | None:
        shared = {one: sum(a == b for a, b in zip(one, path, strict=False)) for one in self.definitions.get(name, ())}
        return max(shared, key=lambda one: shared[one], default=None)


def _widen(root: dict[str, Any], widened: set[int], places: Mapping[int, str]) -> list[str]:
    changes: list[str] = []
    schemas = dict(_walked(root, ()))
    for path in [path for path, schema in schemas.items() if id(schema) in widened]:
        for at, step in enumerate(path):
            outer = schemas.get(path[:at], {})
            if step in {"not", "if"} and step in outer:
                del outer[step]
                changes.append(f"{places[id(outer)]}: {step} left out (part of it cannot be used)")
            elif step == "oneOf" and step in outer:
                ways = outer.pop("oneOf")
                if "anyOf" in outer:
                    outer["allOf"] = [*outer.get("allOf", ()), {"anyOf": ways}]
                else:
                    outer["anyOf"] = ways
    return changes


def _pointer(path: Path) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "".join(["#", *(f"/{quote(step, safe=_SAFE)}" for step in steps)])


def _only_reference(root: dict[str, Any]) -> dict[str, Any] | None:
    ways = root.get("allOf")
    alone = ways[0] if isinstance(ways, list) and len(ways) == 1 and isinstance(ways[0], dict) else {}
    reference, key = (root["$ref"], "$ref") if "$ref" in root else (alone.get("$ref"), "allOf")
    name = next((one for one in DEFINITIONS if str(reference).startswith(f"#/{one}/")), None)
    if name is None or "properties" in root or "additionalProperties" in root or (key == "allOf" and len(alone) > 1):
        return None
    target = root[name].get(unquote(str(reference).split("/", 2)[2]).replace("~1", "/").replace("~0", "~"))
    if not isinstance(target, dict) or target.get("$ref") == reference:
        return None
    rest = {one: value for one, value in root.items() if one != key}
    both = target.keys() & rest.keys() - {"title", "description", "type"}
    return None if both else {**target, **rest}


def _walked(schema: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    if not isinstance(schema, dict):
        return
    yield path, schema
    for key, value in schema.items():
        inner: Iterator[tuple[str | int, Any]] = iter(())
        if key in SINGLE:
            yield from _walked(value, (*path, key))
        elif key in BY_NAME and isinstance(value, dict):
            inner = iter(value.items())
        elif key in LISTS and isinstance(value, list):
            inner = enumerate(value)
        for name, one in inner:
            yield from _walked(one, (*path, key, name))
