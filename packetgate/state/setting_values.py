"""Parse and validate settings that users write as text or as values in a file."""

import json
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from packetgate.state.errors import ConfigError

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class SettingValue:
    """A value, and the place that sets it."""

    value: Any
    where: str


def parse_setting(model: type[BaseModel], name: str, text: str, where: str) -> SettingValue:
    """Parse the text of a field; lists are JSON or separated by commas.

    Raises:
        ConfigError: the field does not accept the value.
    """
    annotation, stripped = model.model_fields[name].annotation, text.strip()
    types: set[Any] = {*get_args(annotation)} if NoneType in get_args(annotation) else {annotation}
    value: Any = stripped
    if bool in types:
        value = _BOOLEANS.get(stripped, stripped)
    elif {tuple, dict} & {get_origin(kind) for kind in types}:
        value = _parsed(stripped)
    return check_setting(model, name, value, where, text=stripped, strict=not {int, float} & types)


def check_setting(
    model: type[BaseModel], name: str, value: Any, where: str, *, text: str | None = None, strict: bool = True
) -> SettingValue:
    """Return a field's value if the field accepts it.

    Raises:
        ConfigError: the field does not accept the value.
    """
    checked = tuple(value) if isinstance(value, list) else value
    try:
        valid = model.model_validate({name: checked}, strict=strict)
    except ValidationError as error:
        instead = "" if text is None else f", not {text[:60]!r}"
        raise ConfigError(f"{where}: expected {describe_setting(model, name)}{instead}") from error
    return SettingValue(getattr(valid, name), where)


def describe_setting(model: type[BaseModel], name: str) -> str:
    """Return the values that a field accepts, in words."""
    field = model.model_json_schema()["properties"][name]
    field = next(option for option in field.get("anyOf", [field]) if option.get("type") != "null")
    if "enum" in field:
        return " or ".join(field["enum"])
    words = {
        "boolean": "true or false",
        "array": "a list of names or patterns such as notes.*, none of them empty",
        "object": 'an object, as JSON such as {"name": "value"} or as a table of the file',
        "string": "a word, such as low",
    }
    if field["type"] in words:
        return words[field["type"]]
    number = "a whole number" if field["type"] == "integer" else "a number"
    low = f"from {_number(field['minimum'])}" if "minimum" in field else f"above {_number(field['exclusiveMinimum'])}"
    return f"{number} {low} up to {_number(field['maximum'])}"


def _parsed(text: str) -> Any:
    if not text.startswith(("[", "{")):
        return [part.strip() for part in text.split(",")]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, or thousands of brackets
        return text


def _number(value: float) -> str:
    return f"{value:,.12g}"
