"""Options of a role's model.

The query of the model's name overrides `PACKETGATE_<ROLE>_...`, which overrides `[models.<role>]` of the file.

Options of a table that also names a model apply to that model only.
"""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from packetgate.models.endpoint import Role
from packetgate.models.spec import ModelSpec, Provider
from packetgate.state.errors import ConfigError
from packetgate.state.redaction import is_secret_name, learn
from packetgate.state.setting_values import SettingValue, check_setting, parse_setting

ROLES: tuple[Role, ...] = get_args(Role)
MODEL = "model"
ELSEWHERE = ("BASE_URL", "API_KEY")
"""Variables of a role that are no options."""

_FILLED_IN = re.compile(r"\$\{(\w+)\}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_KEYS = ("authorization", "cookie", "key")


class ModelOptions(BaseModel):
    """Options of a model; None leaves the choice to the stage, the model, or its server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    """Replaces the stages' own temperatures."""
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    seed: int | None = Field(default=None, ge=0, le=2**31 - 1)
    enable_thinking: bool | None = None
    """Passed to the chat template; templates without it ignore it."""
    thinking_budget: int | None = Field(default=None, ge=0, le=1_000_000)
    """Most thought tokens before an answer."""
    native_tools: bool | None = None
    """Whether tools are offered by tool calling; None: try it; False: request calls in a JSON form."""
    vision: bool | None = None
    """Whether the model takes pictures; None: try it."""
    reasoning_effort: str | None = Field(default=None, pattern="^[a-z_-]{1,20}$")
    timeout: float | None = Field(default=None, gt=0.0, le=86_400.0)
    """Time limit of an answer, in seconds."""
    extra_body: dict[str, JsonValue] | None = None
    """Added to the body of every request."""
    headers: dict[str, str] | None = Field(default=None, repr=False)
    """Sent with every request; `${NAME}` in a value is an environment variable."""
    n_ctx: int | None = Field(default=None, ge=0, le=100_000_000)
    """0 takes the model's own context length."""
    n_gpu_layers: int | None = Field(default=None, ge=-1, le=100_000)
    n_batch: int | None = Field(default=None, ge=1, le=10_000_000)
    n_threads: int | None = Field(default=None, ge=1, le=100_000)

    @property
    def loading(self) -> dict[str, int]:
        """Options for loading a GGUF file."""
        return {name: value for name in LOADING if (value := getattr(self, name)) is not None}

    @property
    def sampling(self) -> dict[str, Any]:
        """Options that override a stage's sampling."""
        return {name: value for name in SAMPLING if (value := getattr(self, name)) is not None}


SAMPLING = ("temperature", "top_p", "seed")
ANSWERING = ("temperature", "top_p", "enable_thinking", "thinking_budget", "reasoning_effort", "extra_body")
"""Options that change answers."""
LOADING = ("n_ctx", "n_gpu_layers", "n_batch", "n_threads")
_BOTH = (*SAMPLING, "enable_thinking", "thinking_budget")
KNOWN: dict[Provider, tuple[str, ...]] = {
    "reflex": (),
    "openai": (*_BOTH, "native_tools", "vision", "reasoning_effort", "timeout", "extra_body", "headers"),
    "llamacpp": (*_BOTH, *LOADING),
    "decisions": ("timeout", "headers"),
}
"""The options of each kind of model."""


def parsed_options(role: Role, spec: ModelSpec, tables: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """Return the options given for a role's model.

    Args:
        tables: the role's options from `file_options`.

    Raises:
        ConfigError: an option is unknown, its value is invalid, or a key is written where others can read it.
    """
    if spec.provider == "reflex":
        return {}
    named, prefix = f"{spec.prefix}:{spec.name}", f"PACKETGATE_{role.upper()}_"
    texts = {
        name.removeprefix(prefix).lower(): (text, name)
        for name, text in os.environ.items()
        if name.startswith(prefix) and name.removeprefix(prefix) not in ELSEWHERE and text.strip()
    }
    in_query = {name: (text, f"{named}: {name}") for name, text in spec.options.items()}
    places = {name: one.where for name, one in tables.items()}
    for name, where in (places | {name: where for name, (_, where) in (texts | in_query).items()}).items():
        _check_name(name, KNOWN[spec.provider], where, f"{spec.provider} models take")
    read = {name: parse_setting(ModelOptions, name, text, where) for name, (text, where) in (texts | in_query).items()}
    for one in (tables.get("headers"), read.get("headers") if "headers" in in_query else None):
        _check_headers(one)
    return {**tables, **read}


def effective_options(given: Mapping[str, SettingValue]) -> ModelOptions:
    """Return the effective options, with variables in headers filled in.

    Raise ConfigError if a header is invalid, or its variable is not set.
    """
    values = {name: one.value for name, one in given.items()}
    if "headers" in values:
        values["headers"] = _filled_in(given["headers"])
    return ModelOptions.model_validate(values)


def file_options(models: Any, path: str) -> dict[str, dict[str, SettingValue]]:
    """Read the file's table `models`, by role.

    Raise ConfigError if an option is invalid (see `parsed_options`), or the name of a model is not text.
    """
    if not isinstance(models, dict) or not all(isinstance(table, dict) for table in models.values()):
        raise ConfigError(f"{path}: models: must contain tables: [models.lite] and [models.prime]")
    found: dict[str, dict[str, SettingValue]] = {}
    for role, table in models.items():
        _check_name(role, ROLES, f"{path}: models.{role}", "there are", what="role")
        for name, value in table.items():
            where = f"{path}: models.{role}.{name}"
            if name == MODEL and isinstance(value, str):
                continue
            if name == MODEL:
                raise ConfigError(f'{where}: it must be a model name, such as "ollama:qwen3:4b"')
            _check_name(name, tuple(ModelOptions.model_fields), where, "there are")
            found.setdefault(role, {})[name] = check_setting(ModelOptions, name, value, where)
    return found


def named_models(models: Any) -> dict[str, str]:
    """Return the models that the table `models` names, by role; `file_options` reports errors."""
    tables = models.items() if isinstance(models, dict) else ()
    found = {role: table.get(MODEL) for role, table in tables if isinstance(table, dict)}
    return {role: name for role, name in found.items() if isinstance(name, str)}


def option_variables() -> frozenset[str]:
    """Return the names of all environment variables of roles."""
    names = (*(name.upper() for name in ModelOptions.model_fields), *ELSEWHERE)
    return frozenset(f"PACKETGATE_{role.upper()}_{name}" for role in ROLES for name in names)


def _check_name(name: str, known: tuple[str, ...], where: str, there_are: str, what: str = "option") -> None:
    if name in known:
        return
    near = get_close_matches(name, known, n=2, cutoff=0.6)
    suggestion = f"did you mean {' or '.join(near)}?" if near else f"{there_are} {', '.join(known)}"
    raise ConfigError(f"{where}: unknown {what} {name!r}: {suggestion}")


def _check_headers(given: SettingValue | None) -> None:
    for name, value in (given.value if given else {}).items():
        is_key = is_secret_name(name) or name.lower().endswith(_KEYS)
        if is_key and not _FILLED_IN.search(value):
            raise ConfigError(
                f"{given.where if given else ''}: {name} looks like a key, which must not be written here: "
                f'put it into an environment variable, and write {{"{name}": "${{MY_VARIABLE}}"}}'
            )


def _filled_in(given: SettingValue) -> dict[str, str]:
    headers = {}
    for name, value in given.value.items():
        missing = [one for one in _FILLED_IN.findall(value) if one not in os.environ]
        if missing:
            raise ConfigError(f"{given.where}: {name}: the environment variable {missing[0]} is not set: set it")
        filled = _FILLED_IN.sub(lambda found: os.environ[found[1]], value).strip()
        if not _HEADER.fullmatch(name) or not filled.isascii() or not filled.isprintable():
            raise ConfigError(f"{given.where}: {name!r} is not a valid HTTP header: check its name and value")
        if filled != value:
            learn(name, filled)
        headers[name] = filled
    return headers
