"""Read the parameters of a tool from its schema, and convert texts to values that the schema accepts."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from packetgate.reflex.values.dates import expected_date_format, format_moment, parse_moment
from packetgate.reflex.values.mentions import unify_synonym
from packetgate.reflex.values.tokens import number_parts
from packetgate.tools.spec.tool_spec import MAX_SCHEMA_DEPTH, ToolSpec
from packetgate.tools.text.words import STOP_WORDS, stem_of, words_of

if TYPE_CHECKING:
    from jsonschema_rs import Validator

MAX_PARAMETERS = 60
COMMAND_STEMS = frozenset(stem_of(word) for word in "command cmd argv args arguments program".split())
"""Stems of parameter names that take a command."""
_ITEM = "[]"
_EXAMPLES = re.compile(
    r"\b(?:e\.g\.?|i\.e\.?|such as|for example|for instance|example:|one of)[,:]?\s+([^.)]{1,200})", re.IGNORECASE
)
_ZONE = re.compile(r"\bIANA\b|\b(?:Africa|America|Asia|Australia|Europe|Pacific)/[A-Z]")
_SHARE = re.compile(r"(?<![\d.])0?\.\d|decimal|fraction|(?:0|zero) (?:to|and|-) (?:1|one)\b", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`]([^'\"`\n]{1,60})['\"`]")
_SPLIT_EXAMPLES = re.compile(r",\s*(?:or\s+|and\s+|etc\.?)?|\s+or\s+|;\s*")
_SPLIT_ITEMS = re.compile(r"\s*(?:,|;|、)\s*(?:and\s+|or\s+)?|\s+(?:and|und|y|et|&)\s+")
_YES = frozenset("true yes on enabled enable ja sí si oui 是".split())
_NO = frozenset("false no off disabled disable nein non 否".split())
_LIMITS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (int, float)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), (int,)),
    "pattern": (str,),
}
"""Keywords that limit a value, and the types in which they are read."""
_FORMATS = {
    "uri": re.compile(r"[A-Za-z][\w+.-]{1,20}:\S+|www\.\S+"),
    "url": re.compile(r"[A-Za-z][\w+.-]{1,20}:\S+|www\.\S+"),
    "email": re.compile(r"[^\s@]+@[^\s@]+"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "date-time": re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*"),
}


@dataclass(frozen=True)
class Parameter:
    """A leaf of a tool's input schema."""

    path: tuple[str, ...]  # names from the outside in; `[]` is the one item of a list of objects
    schema: dict[str, Any]
    required: bool  # whether the parameter and all objects around it are required
    order: int  # position in the schema
    words: tuple[str, ...] = ()  # stems of its name

    @property
    def name(self) -> str:
        """The innermost name of the path."""
        return next((part for part in reversed(self.path) if part != _ITEM), "")

    @cached_property
    def type(self) -> str:
        """The JSON type; `enum` if the schema lists choices, `any` if it has no type."""
        kind = "enum" if _listed(self.schema.get("enum")) else self.schema.get("type")
        known = {"string", "integer", "number", "boolean", "array", "object", "enum"}
        return kind if isinstance(kind, str) and kind in known else "any"

    @cached_property
    def description(self) -> str:
        """The start of the schema's description."""
        text = self.schema.get("description")
        return text[:600] if isinstance(text, str) else ""

    @cached_property
    def about(self) -> frozenset[str]:
        """Stems of the description, without stop words and the words of the name."""
        words = (word for word in words_of(self.description)[:40] if word not in STOP_WORDS)
        return frozenset(unify_synonym(stem_of(word)) for word in words) - {*self.words}

    @cached_property
    def examples(self) -> tuple[str, ...]:
        """Example values in the schema or the description."""
        found = [str(value) for value in _listed(self.schema.get("examples")) if isinstance(value, str | int | float)]
        found += _QUOTED.findall(self.description)
        for match in _EXAMPLES.finditer(self.description):
            found += [part.strip(" '\"`()") for part in _SPLIT_EXAMPLES.split(match[1])]
        return tuple(dict.fromkeys(value for value in found if 0 < len(value) <= 60))[:20]

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values of the schema's `enum`."""
        return tuple(_listed(self.schema.get("enum")))

    @cached_property
    def items(self) -> "Parameter":
        """A parameter for one item of this parameter's list."""
        inner = self.schema.get("items")
        schema = {"description": self.description} | (_resolved(inner) if isinstance(inner, dict) else {})
        return Parameter(self.path, schema, self.required, self.order, self.words)

    @cached_property
    def _limits(self) -> "Validator":
        from jsonschema_rs import validator_for  # its patterns take linear time

        kind = {} if self.type in {"any", "enum"} else {"type": self.type}
        limits = {name: limit for name, limit in self.schema.items() if type(limit) in _LIMITS.get(name, ())}
        for ignored in ({"pattern"} - limits.keys(), {"pattern"}):
            try:
                return validator_for(kind | {name: limit for name, limit in limits.items() if name not in ignored})
            except ValueError:  # the pattern or a limit is broken
                continue
        return validator_for(kind)

    def accepts(self, value: Any) -> bool:
        """Return whether the schema allows a value: type, choices, bounds, lengths, format and pattern."""
        if isinstance(choices := self.schema.get("enum"), list):
            return value in choices
        form = _FORMATS.get(str(self.schema.get("format")))
        if isinstance(value, str) and form and not form.fullmatch(value):
            return False
        if isinstance(value, list) and not all(map(self.items.accepts, value)):
            return False
        try:
            return self._limits.is_valid(value)
        except ValueError:  # a lone surrogate
            return False

    @cached_property
    def is_share(self) -> bool:
        """Whether the parameter takes a fraction between 0 and 1, such as 0.05."""
        most = self.schema.get("maximum")
        return bool(isinstance(most, int | float) and 0 < most <= 1) or bool(_SHARE.search(self.description))

    @cached_property
    def takes_zone(self) -> bool:
        """Whether the parameter takes a time zone such as Asia/Tokyo."""
        return bool(_ZONE.search(self.description)) and self.type == "string"

    @cached_property
    def time_format(self) -> str:
        """The expected date format, such as `YYYY-MM-DD`; empty if there is none."""
        return expected_date_format(str(self.schema.get("format", "")), self.description)


@lru_cache(maxsize=1_024)
def parameters_of(spec: ToolSpec) -> tuple[Parameter, ...]:
    """Return the parameters of a tool, in the order of its schema. Objects are replaced by their properties."""
    root = {**spec.input_schema, "properties": spec.parameters, "required": [*spec.required]}
    leaves = _leaves(root, (), True, spec.input_schema, 0)
    return tuple(
        Parameter(path, schema, required, order, tuple(unify_synonym(stem_of(word)) for word in words_of(path[-1])))
        for order, (path, schema, required) in zip(range(MAX_PARAMETERS), leaves, strict=False)
    )


def _leaves(
    schema: dict[str, Any], path: tuple[str, ...], required: bool, root: dict[str, Any], depth: int
) -> Iterator[tuple[tuple[str, ...], dict[str, Any], bool]]:
    properties = schema.get("properties")
    if depth > MAX_SCHEMA_DEPTH or not isinstance(properties, dict):
        return
    needed = {name for name in _listed(schema.get("required")) if isinstance(name, str)}
    for name, declared in properties.items():
        outer = _resolved(declared, root)
        inner = _resolved(outer.get("items"), root) if outer.get("type") == "array" else outer
        if isinstance(inner.get("properties"), dict) and inner["properties"]:
            place = (*path, str(name), *([_ITEM] if inner is not outer else []))
            yield from _leaves(inner, place, required and name in needed, root, depth + 1)
        else:
            yield (*path, str(name)), outer, required and name in needed


def _resolved(schema: Any, root: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a schema with references resolved, and each union replaced by its first alternative that is not null."""
    if not isinstance(schema, dict):
        return {}
    for _ in range(MAX_SCHEMA_DEPTH):
        reference = schema.get("$ref")
        if isinstance(reference, str) and root is not None:
            target: Any = root
            for part in reference.removeprefix("#/").split("/"):
                target = target.get(part) if isinstance(target, dict) else None
            schema = {**(target if isinstance(target, dict) else {}), **_without(schema, "$ref")}
            continue
        options = [option for option in _listed(schema.get("anyOf") or schema.get("oneOf")) if isinstance(option, dict)]
        option = next((option for option in options if option.get("type") != "null"), None)
        if option is None:
            break
        schema = {**_without(schema, "anyOf", "oneOf"), **option}
    kind = schema.get("type")
    if isinstance(kind, list):
        schema = {**schema, "type": next((name for name in kind if isinstance(name, str) and name != "null"), "any")}
    if "const" in schema and "enum" not in schema:
        schema = {**schema, "enum": [schema["const"]]}
    return {**schema}


def _without(schema: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in names}


def set_value(params: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set a value at a parameter's path, and create the missing objects and lists around the value."""
    at: Any = params
    for name, following in zip(path, [*path[1:], None], strict=True):
        if name == _ITEM:
            if not at:
                at.append({})
            at = at[0]
        elif following is None:
            at[name] = value
        else:
            at = at.setdefault(name, [] if following == _ITEM else {})


def _listed(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else []


def convert(text: str, parameter: Parameter, now: datetime | None = None) -> Any:
    """Return a whole text as a value that the parameter accepts; None if the text is not such a value."""
    value = _converted(text.strip(), parameter, now)
    return value if value is not None and parameter.accepts(value) else None


def _converted(text: str, parameter: Parameter, now: datetime | None) -> Any:
    match parameter.type:
        case "enum":
            return _choice(text, parameter.choices)
        case "integer" | "number":
            parts = number_parts(text.replace(" ", "", 1))
            return None if parts is None else as_number(parts[0], integer=parameter.type == "integer")
        case "boolean":
            return True if text.lower() in _YES else False if text.lower() in _NO else None
        case "array":
            return _converted_items(text, parameter, now)
        case "object":
            return _parsed(text, dict)
        case "string" if parameter.time_format and (moment := parse_moment(text, now)):
            return format_moment(moment, parameter.time_format)
    return text or None


def _converted_items(text: str, parameter: Parameter, now: datetime | None) -> list[Any] | None:
    parsed = _parsed(text, list)
    if parsed is not None:
        return list(parsed)
    is_command = bool({*parameter.words} & COMMAND_STEMS)
    parts = split_command(text) if is_command else [part for part in _SPLIT_ITEMS.split(text) if part]
    values = [convert(part, parameter.items, now) for part in parts]
    return values if values and None not in values else None


def split_command(text: str) -> list[str]:
    """Split a command into words like a shell."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _parsed(text: str, kind: type) -> Any:
    if not text.startswith(("[", "{")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def as_number(value: float, *, integer: bool) -> int | float | None:
    """Return a number; with `integer`, as an integer, or None if the number is not whole."""
    if float(value).is_integer() and abs(value) < 1e15 and (integer or isinstance(value, int)):
        return int(value)
    return None if integer else value


def _choice(text: str, choices: Sequence[Any]) -> Any:
    for choice in choices:
        if str(choice).casefold() == text.casefold():
            return choice
    stems = stems_in(text)
    return next((choice for choice in choices if stems and stems_in(str(choice)) == stems), None)


def stems_in(text: str) -> list[str]:
    """Return the stems of a text's words, in order."""
    return [stem_of(word) for word in words_of(text)] or [text.casefold()]
