"""Values of single keywords of a JSON Schema, as servers write them."""

import json
import math
from collections.abc import Callable
from typing import Any

MAX_SIZE = 2**53

_SIZES = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
)
_SWITCHES = ("uniqueItems", "deprecated", "readOnly", "writeOnly")
_WORDS = ("title", "description", "format", "$comment", "contentEncoding", "contentMediaType")


def is_of(value: Any, kind: str) -> bool:
    """Whether a value is of a type of JSON Schema."""
    match value:
        case None:
            return kind == "null"
        case bool():
            return kind == "boolean"
        case int():
            return kind in {"integer", "number"}
        case float():
            return kind == "number" or (kind == "integer" and value.is_integer())
        case str():
            return kind == "string"
    return kind == ("array" if isinstance(value, list) else "object")


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def _bound(value: Any) -> int | float | bool | None:
    return value if isinstance(value, bool) else _number(value)


def _step(value: Any) -> int | float | None:
    number = _number(value)
    return number if number is not None and number > 0 else None


def _size(value: Any) -> int | None:
    number = _number(value)
    whole = number is not None and 0 <= number <= MAX_SIZE and number == int(number)
    return int(number) if whole and number is not None else None


def _switch(value: Any) -> bool | None:
    if isinstance(value, str) and value.casefold() in {"true", "false"}:
        return value.casefold() == "true"
    return value if isinstance(value, bool) else None


def _words(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    return value if isinstance(value, str) else None


def _enum(value: Any) -> list[Any] | None:
    if not isinstance(value, list) or not value:
        return None
    return [*{json.dumps(one, sort_keys=True): one for one in value}.values()]


def _needs(value: Any) -> dict[str, list[str]] | None:
    if not isinstance(value, dict):
        return None
    lists = {name: needs for name, needs in value.items() if isinstance(needs, list)}
    return {name: list(dict.fromkeys(one for one in needs if isinstance(one, str))) for name, needs in lists.items()}


def _data(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


READERS: tuple[tuple[tuple[str, ...], Callable[[Any], Any]], ...] = (
    (("minimum", "maximum"), _number),
    (("exclusiveMinimum", "exclusiveMaximum"), _bound),
    (("multipleOf",), _step),
    (_SIZES, _size),
    (_SWITCHES, _switch),
    (_WORDS, _words),
    (("enum",), _enum),
    (("examples",), lambda value: value if isinstance(value, list) else [value]),
    (("$ref", "$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$id", "id"), _words),
    (("dependentRequired",), _needs),
)
"""Keywords, and what reads their value: None where it cannot be used."""
