"""Read and validate settings that users write as text or as values of a file."""

import json
from contextlib import suppress
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from packetgate.state.errors import ConfigError


@dataclass(frozen=True)
class SettingValue:
    """A value, and the place that sets it."""

    value: Any
    where: str


def parse_setting(model: type[BaseModel], name: str, text: str, where: str) -> SettingValue:
    """Return a field's value from the text of an option or variable; lists are JSON or separated by commas.

    Raises:
        ConfigError: the field does not accept the value.
    """
    text = text.strip()
    value = _decoded(text, model.model_fields[name].annotation)
    return check_setting(model, name, value, where, f", not {text[:60]!r}")


def check_setting(model: type[BaseModel], name: str, value: Any, where: str, instead: str = "") -> SettingValue:
    """Return a value for the field `name` of `model`, checked. `where` names the source in errors.

    Raises:
        ConfigError: the field does not accept the value; the message ends with `instead`.
    """
    try:
        valid = model.model_validate_json(json.dumps({name: value}, default=str), strict=True)
    except ValidationError as error:
        raise ConfigError(f"{where}: {error.errors(include_url=False)[0]['msg']}{instead}") from error
    return SettingValue(getattr(valid, name), where)


def _decoded(text: str, annotation: Any) -> Any:
    types = {*get_args(annotation)} if NoneType in get_args(annotation) else {annotation}
    kinds = types | {get_origin(kind) for kind in types}
    if kinds & {str, Literal}:
        return text
    if tuple in kinds and not text.startswith("["):
        return [part.strip() for part in text.split(",")]
    if float in kinds:
        with suppress(ValueError):
            return float(text)  # JSON does not allow `.7`
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # no JSON, or thousands of brackets
        return text
    return bool(value) if bool in kinds and value in (0, 1) else value
