"""References of a schema, each as a pointer into the schema itself."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urljoin

_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE = tuple(
    "items additionalProperties not if then else contains propertyNames contentSchema unevaluatedProperties"
    " unevaluatedItems".split()
)
DEFINITIONS = ("$defs", "definitions")
_BY_NAME = ("properties", "patternProperties", "dependentSchemas", *DEFINITIONS)
_NAMING = ("$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_OF_THE_SAME = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas are of the value itself, not of one inside it."""

_Path = tuple[str | int, ...]
_NOT_THERE = object()
_SAFE = "~$&'()*+,;=:@!-._"


def relinked(schema: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a schema without names of its own, and a phrase for each reference that was changed or left out.

    A definition that is not where the reference says is found by its name. A schema that is only a reference becomes
    what it refers to.
    """
    links = _Links(schema)
    rebuilt = _mapped(schema, (), links.changed)
    for _ in range(len(links.by_name) + 1):
        if (target := _all_that_it_is(rebuilt)) is None:
            break
        rebuilt = target
    return rebuilt, links.changes


def take_any(schema: dict[str, Any], ways: list[Any]) -> None:
    """Have a schema take what fits any of some alternatives, not just one: some of them take more than they say."""
    if "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", ()), {"anyOf": ways}]
    else:
        schema["anyOf"] = ways


class _Links:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._bases: dict[_Path, str] = {}
        """By place, the address of what names itself."""
        self._resources: dict[str, _Path] = {}
        self._anchors: dict[tuple[_Path, str], _Path] = {}
        self.by_name: dict[str, list[_Path]] = {}
        self.changes: list[str] = []
        self._opened: list[_Path] = []
        """Where a reference was left out."""
        schemas = [*_walked(root, ())]
        for path, one in schemas:
            self._take(path, one)
        self._targets = {
            path: {key: self._target(path, one[key]) for key in _REFERENCES if isinstance(one.get(key), str)}
            for path, one in schemas
        }
        self._circular = self._closing([path for path, _ in schemas])

    def _take(self, path: _Path, one: Mapping[str, Any]) -> None:
        identity = one.get("$id", one.get("id"))
        if isinstance(identity, str) and not identity.startswith("#"):
            address = urljoin(self._base(path)[1], identity.rstrip("#"))
            self._bases[path] = address
            for known in (identity.rstrip("#"), address):
                self._resources.setdefault(known, path)
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(one.get(key), str):
                self._anchors.setdefault((self._base(path)[0], one[key]), path)
        if isinstance(identity, str) and identity.startswith("#"):
            self._anchors.setdefault((self._base(path)[0], identity[1:]), path)
        for key in DEFINITIONS:
            for name in one.get(key, ()):
                self.by_name.setdefault(name, []).append((*path, key, name))

    def _base(self, path: _Path) -> tuple[_Path, str]:
        """Return the nearest place around one that names itself, and its address."""
        for length in range(len(path), -1, -1):
            if (address := self._bases.get(path[:length])) is not None:
                return path[:length], address
        return (), ""

    def changed(self, path: _Path, one: dict[str, Any]) -> dict[str, Any]:
        """Return a schema whose references are pointers, and which has no name."""
        kept = {key: value for key, value in one.items() if key not in _NAMING and key not in _REFERENCES}
        for key in ("not", "if", "oneOf"):
            if key in kept and any(opened[: len(path) + 1] == (*path, key) for opened in self._opened):
                ways = kept.pop(key)
                if key == "oneOf":
                    take_any(kept, ways)
                else:
                    self.changes.append(f"{_place(path)}: {key} left out (part of it cannot be used)")
        for key, target in self._targets[path].items():
            if target is None or (path, key) in self._circular:
                self._opened.append(path)
                why = "leads nowhere in it" if target is None else "leads back to itself"
                self.changes.append(f"{_place(path)}: $ref left out ({ascii(one[key])[:80]} {why})")
                continue
            if (pointer := _pointer(target)) != one[key] and unquote(pointer) != unquote(one[key]):
                self.changes.append(f"{_place(path)}: {key} {ascii(one[key])[:80]} read as '{pointer}'")
            if "$ref" in kept:
                kept["allOf"] = [*kept.get("allOf", ()), {"$ref": pointer}]
            else:
                kept["$ref"] = pointer
        return kept

    def _closing(self, paths: list[_Path]) -> set[tuple[_Path, str]]:
        """Return references that lead back to a schema of the same value: it would be looked at without end."""
        inner: dict[_Path, list[tuple[_Path, str]]] = {path: [] for path in paths}
        for path in paths:
            steps = next((n for n in (1, 2) if path[:-n] in inner), 0) if path else 0
            if steps and path[-steps] in _OF_THE_SAME:
                inner[path[:-steps]].append((path, ""))
            inner[path] += [(target, key) for key, target in self._targets[path].items() if target in inner]
        closing: set[tuple[_Path, str]] = set()
        seen: set[_Path] = set()
        for start in paths:
            if start in seen:
                continue
            seen.add(start)
            open_, way = {start}, [(start, iter(inner[start]))]
            while way:
                at, following = way[-1]
                for there, key in following:
                    if there in open_:
                        closing.add((at, key))
                    elif there not in seen:
                        seen.add(there)
                        open_.add(there)
                        way.append((there, iter(inner[there])))
                        break
                else:
                    open_.discard(way.pop()[0])
        return closing

    def _target(self, path: _Path, reference: str) -> _Path | None:
        address, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        base, around = self._base(path)
        if address:
            found = self._resources.get(address, self._resources.get(urljoin(around, address)))
            if found is None:
                return None if "/" in address or fragment else self._named(path, address)
            base = found
        if not fragment:
            return base
        if not fragment.startswith("/"):
            anchored = self._anchors.get((base, fragment))
            return self._named(path, fragment) if anchored is None else anchored
        steps = [step.replace("~1", "/").replace("~0", "~") for step in fragment.split("/")[1:]]
        for start in dict.fromkeys((base, ())):
            if (there := _followed(self._root, start, steps)) is not None:
                return there
        return self._named(path, steps[-1]) if len(steps) > 1 else None

    def _named(self, path: _Path, name: str) -> _Path | None:
        """Return the definition of a name that stands nearest to a place."""
        shared = {one: sum(1 for a, b in zip(one, path, strict=False) if a == b) for one in self.by_name.get(name, ())}
        return max(shared, key=lambda one: shared[one], default=None)


def _followed(root: Any, start: _Path, steps: list[str]) -> _Path | None:
    """Return where a pointer leads; None where there is no schema."""
    at: Any = root
    for step in start:
        at = at[step]
    path: list[str | int] = [*start]
    for step in steps:
        if step == "items" and isinstance(at, dict) and "prefixItems" in at and "items" not in at:
            step = "prefixItems"  # noqa: PLW2901
        if isinstance(at, list):
            if not step.isdecimal() or int(step) >= len(at):
                return None
            at, key = at[int(step)], int(step)
            path.append(key)
            continue
        key_there = at.get(step, _NOT_THERE) if isinstance(at, dict) else _NOT_THERE
        if key_there is _NOT_THERE:
            return None
        at = key_there
        path.append(step)
    return tuple(path) if isinstance(at, dict | bool) else None


def _pointer(path: _Path) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "#" + "".join(f"/{quote(step, safe=_SAFE)}" for step in steps)


def _place(path: _Path) -> str:
    names = [str(step) for at, step in enumerate(path) if at and path[at - 1] in _BY_NAME]
    return ".".join(names) or "the arguments"


def _all_that_it_is(root: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a schema is by its one reference, its own keywords kept; None where it is more than a reference."""
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


def _walked(schema: Any, path: _Path) -> Iterator[tuple[_Path, dict[str, Any]]]:
    """Yield every schema in a schema, with its place, the outer ones first."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for key, inner in _inner(schema):
        yield from _walked(inner, (*path, *key))


def _inner(schema: dict[str, Any]) -> Iterator[tuple[_Path, Any]]:
    for key, value in schema.items():
        if key in _BY_NAME and isinstance(value, dict):
            yield from (((key, name), one) for name, one in value.items())
        elif key in _LISTS and isinstance(value, list):
            yield from (((key, at), one) for at, one in enumerate(value))
        elif key in SINGLE:
            yield (key,), value


def _mapped(schema: Any, path: _Path, change: Callable[[_Path, dict[str, Any]], dict[str, Any]]) -> Any:
    if not isinstance(schema, dict):
        return schema
    mapped = dict(schema)
    for key, value in schema.items():
        if key in _BY_NAME and isinstance(value, dict):
            mapped[key] = {name: _mapped(one, (*path, key, name), change) for name, one in value.items()}
        elif key in _LISTS and isinstance(value, list):
            mapped[key] = [_mapped(one, (*path, key, at), change) for at, one in enumerate(value)]
        elif key in SINGLE:
            mapped[key] = _mapped(value, (*path, key), change)
    return change(path, mapped)
