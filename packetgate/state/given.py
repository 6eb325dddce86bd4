"""Settings as people write them: a text, or a value of a file, read as a field of a model, and where it stands."""

import json
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from packetgate.state.errors import ConfigError

TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Given:
    """A value that is given, and the place where somebody finds it."""

    value: Any
    where: str


def read_text(kind: type[BaseModel], name: str, text: str, where: str) -> Given:
    """Return what a text says: pydantic reads numbers, lists are JSON or have commas, and a yes is spelt in one way.

    Raises:
        ConfigError: the field does not take that.
    """
    types, said = _types(kind, name), text.strip()
    value: Any = said
    if bool in types:
        value = TRUTHS.get(said, said)
    elif {tuple, dict} & {get_origin(one) for one in types}:
        value = _parsed(said)
    is_number = bool({int, float} & types)
    return checked(kind, name, value, where, text=said, strict=not is_number)


def checked(
    kind: type[BaseModel], name: str, value: Any, where: str, *, text: str | None = None, strict: bool = True
) -> Given:
    """Return a value of a field once the field takes it.

    Raises:
        ConfigError: it does not.
    """
    said = tuple(value) if isinstance(value, list) else value
    try:
        valid = kind.model_validate({name: said}, strict=strict)
    except ValidationError as error:
        instead = "" if text is None else f", not {text[:60]!r}"
        raise ConfigError(f"{where}: it takes {takes(kind, name)}{instead}") from error
    return Given(getattr(valid, name), where)


def takes(kind: type[BaseModel], name: str) -> str:
    """Return what a field may be, in words."""
    field = kind.model_json_schema()["properties"][name]
    field = next(one for one in field.get("anyOf", [field]) if one.get("type") != "null")
    if "enum" in field:
        return " or ".join(field["enum"])
    if field["type"] == "boolean":
        return "true or false"
    if field["type"] == "array":
        return "a list of names or patterns such as notes.*, none of them empty"
    if field["type"] == "object":
        of = " of texts" if field["additionalProperties"].get("type") == "string" else ""
        return f'an object{of}, as JSON such as {{"name": "value"}} or as a table of the file'
    if field["type"] == "string":
        return "a word, such as low"
    whole = "a whole number" if field["type"] == "integer" else "a number"
    low = f"from {_number(field['minimum'])}" if "minimum" in field else f"above {_number(field['exclusiveMinimum'])}"
    return f"{whole} {low} up to {_number(field['maximum'])}"


def _types(kind: type[BaseModel], name: str) -> set[Any]:
    annotation = kind.model_fields[name].annotation
    return {*get_args(annotation)} if NoneType in get_args(annotation) else {annotation}


def _parsed(said: str) -> Any:
    if not said.startswith(("[", "{")):
        return [part.strip() for part in said.split(",")]
    try:
        return json.loads(said)
    except (ValueError, RecursionError):  # no JSON, or thousands of brackets
        return said


def _number(value: float) -> str:
    return f"{value:,.12g}"
