"""A tool's parameters as values are sought for them: leaves of its schema, whatever objects they stand in."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from packetgate.deciders.values.dates import format_wanted
from packetgate.deciders.values.mentions import sense_of
from packetgate.tools.spec.tool_spec import MAX_DEPTH, ToolSpec
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_of

MAX_PARAMETERS = 60
"""Leaves of a schema that are filled; a server may list them without end."""
_ITEM = "[]"
_EXAMPLES = re.compile(
    r"\b(?:e\.g\.?|i\.e\.?|such as|for example|for instance|example:|one of)[,:]?\s+([^.)]{1,200})",
    re.IGNORECASE,
)
_ZONE = re.compile(r"\bIANA\b|\b(?:Africa|America|Asia|Australia|Europe|Pacific)/[A-Z]")
_SHARE = re.compile(r"(?<![\d.])0?\.\d|decimal|fraction|(?:0|zero) (?:to|and|-) (?:1|one)\b", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`]([^'\"`\n]{1,60})['\"`]")
_SPLIT = re.compile(r",\s*(?:or\s+|and\s+|etc\.?)?|\s+or\s+|;\s*")


@dataclass(frozen=True)
class Parameter:
    """A leaf of a tool's input schema."""

    path: tuple[str, ...]
    """Names from the outside in; `[]` stands for the one item of a list of objects."""
    schema: dict[str, Any]
    required: bool
    """It and everything around it."""
    order: int
    words: tuple[str, ...] = field(default=())
    """Stems of its name."""

    @property
    def name(self) -> str:
        """The innermost name."""
        return next((part for part in reversed(self.path) if part != _ITEM), "")

    @cached_property
    def type(self) -> str:
        """What JSON type it is: `enum` where the choices are listed, `any` where nothing is said."""
        return type_of(self.schema)

    @cached_property
    def description(self) -> str:
        """What its schema says of it."""
        said = self.schema.get("description")
        return said[:600] if isinstance(said, str) else ""

    @cached_property
    def about(self) -> frozenset[str]:
        """Stems of its description that say something."""
        return frozenset(
            sense_of(stem_of(word)) for word in words_of(self.description)[:40] if word not in STOP_WORDS
        ) - {*self.words}

    @cached_property
    def examples(self) -> tuple[str, ...]:
        """Values that its schema or its description gives as examples."""
        found = [str(one) for one in _listed(self.schema.get("examples")) if isinstance(one, str | int | float)]
        found += _QUOTED.findall(self.description)
        for match in _EXAMPLES.finditer(self.description):
            found += [part.strip(" '\"`()") for part in _SPLIT.split(match[1])]
        return tuple(dict.fromkeys(one for one in found if 0 < len(one) <= 60))[:20]

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values listed, if they are."""
        return tuple(_listed(self.schema.get("enum")))

    @cached_property
    def items(self) -> "Parameter":
        """What one item of a list is."""
        inner = self.schema.get("items")
        described = {"description": self.description} | (resolved(inner) if isinstance(inner, dict) else {})
        return Parameter(self.path, described, self.required, self.order, self.words)

    @cached_property
    def is_share(self) -> bool:
        """Whether it is a part of one, such as 0.05, by its bounds, its examples or its description."""
        most = self.schema.get("maximum")
        return bool(isinstance(most, int | float) and 0 < most <= 1) or bool(_SHARE.search(self.description))

    @cached_property
    def takes_zone(self) -> bool:
        """Whether it takes the name of a time zone, such as Asia/Tokyo."""
        return bool(_ZONE.search(self.description)) and self.type == "string"

    @cached_property
    def time_format(self) -> str:
        """The format asked for, such as `YYYY-MM-DD`."""
        return format_wanted(str(self.schema.get("format", "")), self.description)


@lru_cache(maxsize=1_024)
def parameters_of(spec: ToolSpec) -> tuple[Parameter, ...]:
    """Return the leaves of a tool's schema, in its order."""
    root = {**spec.input_schema, "properties": spec.parameters, "required": [*spec.required]}
    leaves = _leaves(root, (), True, spec.input_schema, 0)
    return tuple(
        Parameter(path, schema, required, order, tuple(sense_of(stem_of(word)) for word in words_of(path[-1])))
        for order, (path, schema, required) in zip(range(MAX_PARAMETERS), leaves, strict=False)
    )


def _leaves(
    schema: dict[str, Any], path: tuple[str, ...], required: bool, root: dict[str, Any], depth: int
) -> Iterator[tuple[tuple[str, ...], dict[str, Any], bool]]:
    properties = schema.get("properties")
    if depth > MAX_DEPTH or not isinstance(properties, dict):
        return
    needed = {name for name in _listed(schema.get("required")) if isinstance(name, str)}
    for name, given in properties.items():
        inner = resolved(given, root)
        inside = resolved(inner.get("items"), root) if inner.get("type") == "array" else inner
        here = (*path, str(name), *([_ITEM] if inside is not inner else []))
        if isinstance(inside.get("properties"), dict) and inside["properties"]:
            yield from _leaves(inside, here, required and name in needed, root, depth + 1)
        else:
            yield (*path, str(name)), inner, required and name in needed


def resolved(schema: Any, root: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a schema without references and nulls: the first alternative that is not null."""
    if not isinstance(schema, dict):
        return {}
    for _ in range(MAX_DEPTH):
        reference = schema.get("$ref")
        if isinstance(reference, str) and root is not None:
            target: Any = root
            for part in reference.removeprefix("#/").split("/"):
                target = target.get(part) if isinstance(target, dict) else None
            schema = {
                **(target if isinstance(target, dict) else {}),
                **{k: v for k, v in schema.items() if k != "$ref"},
            }
            continue
        options = [one for one in _listed(schema.get("anyOf") or schema.get("oneOf")) if isinstance(one, dict)]
        option = next((one for one in options if one.get("type") != "null"), None)
        if option is None:
            break
        schema = {**{k: v for k, v in schema.items() if k not in {"anyOf", "oneOf"}}, **option}
    kind = schema.get("type")
    if isinstance(kind, list):
        schema = {**schema, "type": next((one for one in kind if isinstance(one, str) and one != "null"), "any")}
    if "const" in schema and "enum" not in schema:
        schema = {**schema, "enum": [schema["const"]]}
    return {**schema}


def type_of(schema: dict[str, Any]) -> str:
    """Return the type of a resolved schema."""
    if _listed(schema.get("enum")):
        return "enum"
    kind = schema.get("type")
    return kind if kind in {"string", "integer", "number", "boolean", "array", "object"} else "any"


def put(params: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Put a value where it belongs, making the objects and the list around it."""
    at: Any = params
    for name, then in zip(path, [*path[1:], None], strict=True):
        if name == _ITEM:
            if not at:
                at.append({})
            at = at[0]
        elif then is None:
            at[name] = value
        else:
            at = at.setdefault(name, [] if then == _ITEM else {})


def _listed(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else []
