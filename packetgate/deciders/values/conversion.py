"""What a stretch of text comes to as a JSON value of a parameter's schema."""

import json
import re
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from packetgate.deciders.values.dates import moment_of, written
from packetgate.deciders.values.schema import Parameter, resolved, type_of
from packetgate.deciders.values.tokens import number_parts
from packetgate.tools.text.words import stem_of, words_of

YES = frozenset("true yes on enabled enable ja sí si oui 是".split())
NO = frozenset("false no off disabled disable nein non 否".split())
_SPLIT = re.compile(r"\s*(?:,|;|、)\s*(?:and\s+|or\s+)?|\s+(?:and|und|y|et|&)\s+")
_FORMS = {
    "uri": re.compile(r"[A-Za-z][\w+.-]{1,20}:\S+|www\.\S+"),
    "url": re.compile(r"[A-Za-z][\w+.-]{1,20}:\S+|www\.\S+"),
    "email": re.compile(r"[^\s@]+@[^\s@]+"),
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "date-time": re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*"),
}
"""What a text of a format looks like."""


def convert(said: str, parameter: Parameter, now: datetime | None = None) -> Any:
    """Return the value that `said`, as a whole, stands for, valid by the parameter's schema; None where it is none."""
    value = _converted(said.strip(), parameter, now)
    return value if value is not None and valid(value, parameter.schema) else None


def _converted(said: str, parameter: Parameter, now: datetime | None) -> Any:
    kind = parameter.type
    if kind == "enum":
        return choice_of(said, parameter.choices)
    if kind in {"integer", "number"}:
        return number_of(said, whole=kind == "integer")
    if kind == "boolean":
        return True if said.lower() in YES else False if said.lower() in NO else None
    if kind == "array":
        return _items(said, parameter, now)
    if kind == "object":
        return _parsed(said, dict)
    if kind == "string" and parameter.time_format and (moment := moment_of(said, now)):
        return written(moment, parameter.time_format)
    return said or None


def _items(said: str, parameter: Parameter, now: datetime | None) -> list[Any] | None:
    parsed = _parsed(said, list)
    if parsed is not None:
        return list(parsed)
    words = {*parameter.words}
    parts = split_command(said) if words & COMMANDS else [part for part in _SPLIT.split(said) if part]
    values = [convert(part, parameter.items, now) for part in parts]
    return values if values and None not in values else None


COMMANDS = frozenset(stem_of(word) for word in "command cmd argv args arguments program".split())
"""Stems of the names of parameters that take a command."""


def split_command(said: str) -> list[str]:
    """Return a command in words, as a shell cuts it."""
    try:
        return shlex.split(said)
    except ValueError:
        return said.split()


def _parsed(said: str, kind: type) -> Any:
    if not said.startswith(("[", "{")):
        return None
    try:
        value = json.loads(said)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def number_of(said: str, *, whole: bool) -> int | float | None:
    """Return the number written, with or without a unit or a currency."""
    parts = number_parts(said.replace(" ", "", 1))
    return None if parts is None else number_as(parts[0], whole=whole)


def number_as(value: float, *, whole: bool) -> int | float | None:
    """Return a number as an integer or not; None where it is no whole number and has to be."""
    if float(value).is_integer() and abs(value) < 1e15 and (whole or isinstance(value, int)):
        return int(value)
    return None if whole else value


def choice_of(said: str, choices: Sequence[Any]) -> Any:
    """Return the choice that a text names, letter by letter, or by its stems."""
    for choice in choices:
        if str(choice).casefold() == said.casefold():
            return choice
    stems = stems_in(said)
    return next((choice for choice in choices if stems and stems_in(str(choice)) == stems), None)


def stems_in(text: str) -> list[str]:
    """Return the stems of a text's words in order."""
    return [stem_of(word) for word in words_of(text)] or [text.casefold()]


def valid(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is of the schema's type, among its choices, within its bounds and of its pattern."""
    if isinstance(choices := schema.get("enum"), list):
        return value in choices
    kind = type_of(schema)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    of_type = {
        "string": isinstance(value, str),
        "integer": number and float(value).is_integer(),
        "number": number,
        "boolean": isinstance(value, bool),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
        "any": True,
    }[kind]
    return of_type and (not number or _within(value, schema)) and (
        not isinstance(value, str) or _fits(value, schema)
    ) and (not isinstance(value, list) or _all_valid(value, schema))  # fmt: skip


def _within(value: float, schema: dict[str, Any]) -> bool:
    bounds = {name: bound for name, bound in schema.items() if isinstance(bound, int | float)}
    return (
        bounds.get("minimum", value) <= value <= bounds.get("maximum", value)
        and ("exclusiveMinimum" not in bounds or value > bounds["exclusiveMinimum"])
        and ("exclusiveMaximum" not in bounds or value < bounds["exclusiveMaximum"])
    )


def _fits(value: str, schema: dict[str, Any]) -> bool:
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(value))
    if isinstance(least, int) and isinstance(most, int) and not least <= len(value) <= most:
        return False
    wanted = _FORMS.get(str(schema.get("format")))
    if wanted and not wanted.fullmatch(value):
        return False
    return not isinstance(schema.get("pattern"), str) or _matches(schema["pattern"], value)


def _matches(pattern: str, value: str) -> bool:
    """Whether a value is of a pattern, by an engine that no pattern holds up."""
    from jsonschema_rs import validator_for

    try:
        return bool(validator_for({"type": "string", "pattern": pattern}).is_valid(value))
    except ValueError:
        return True


def _all_valid(values: list[Any], schema: dict[str, Any]) -> bool:
    least, most, items = schema.get("minItems", 0), schema.get("maxItems", len(values)), schema.get("items")
    if isinstance(least, int) and isinstance(most, int) and not least <= len(values) <= most:
        return False
    return all(valid(value, resolved(items)) for value in values)
