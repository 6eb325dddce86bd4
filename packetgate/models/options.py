"""Options of a role's model.

An option in the model name overrides `PACKETGATE_<ROLE>_...`, which overrides `[models.<role>]` of packetgate.toml.

If a table also names a model, its options apply only to this model.
"""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from packetgate.state.errors import ConfigError
from packetgate.state.setting_values import SettingValue, check_setting, parse_setting

Role = Literal["lite", "prime"]
ROLES: tuple[Role, ...] = get_args(Role)
MODEL = "model"
ENDPOINT_VARIABLES = ("BASE_URL", "API_KEY")
"""Suffixes of environment variables that set the endpoint and are not options."""


class ModelOptions(BaseModel):
    """Options of a model; None: the stage, the model or its server decides."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    """Replaces the stages' own temperatures."""
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    seed: int | None = Field(default=None, ge=0, le=2**31 - 1)
    enable_thinking: bool | None = None
    """Passed to the chat template; some templates ignore it."""
    thinking_budget: int | None = Field(default=None, ge=0, le=1_000_000)
    """Limit of thought tokens before an answer."""
    native_tools: bool | None = None
    """Whether to use tool calling; None: try it; False: request calls as JSON."""
    vision: bool | None = None
    """Whether the model accepts images; None: try it."""
    reasoning_effort: str | None = Field(default=None, pattern="^[a-z_-]{1,20}$")
    timeout: float | None = Field(default=None, gt=0.0, le=86_400.0)
    """Time limit of an answer, in seconds."""
    extra_body: dict[str, JsonValue] | None = None
    """Added to the body of every request."""
    n_ctx: int | None = Field(default=None, ge=0, le=100_000_000)
    """Context length in tokens; 0: the length that the model was trained with."""
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
COMMON = (*SAMPLING, "enable_thinking", "thinking_budget")
"""Options of every kind of chat model."""


def parsed_options(
    role: Role, model: str, in_name: Mapping[str, str], tables: Mapping[str, SettingValue], known: tuple[str, ...]
) -> dict[str, SettingValue]:
    """Return the configured options of a role's model.

    Args:
        model: prefix and name of the model.
        in_name: the options after the name, unparsed.
        tables: the role's options from `file_options`.
        known: the options that the model takes.

    Raises:
        ConfigError: an option is unknown, or its value is invalid.
    """
    prefix = f"PACKETGATE_{role.upper()}_"
    texts = {
        name.removeprefix(prefix).lower(): (text, name)
        for name, text in os.environ.items()
        if name.startswith(prefix) and name.removeprefix(prefix) not in ENDPOINT_VARIABLES and text.strip()
    }
    texts |= {name: (text, f"{model}: {name}") for name, text in in_name.items()}
    places = {name: one.where for name, one in tables.items()} | {name: where for name, (_, where) in texts.items()}
    for name, where in places.items():
        _check_name(name, known, where, f"{model.partition(':')[0]} models take")
    read = {name: parse_setting(ModelOptions, name, text, where) for name, (text, where) in texts.items()}
    return {**tables, **read}


def file_options(models: Any, path: str) -> dict[str, dict[str, SettingValue]]:
    """Return the options in the file's table `models`, by role.

    Raise ConfigError if an option is invalid (see `parsed_options`), or a model name is not text.
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
                raise ConfigError(f'{where} must be a model name, such as "ollama:qwen3:4b"')
            _check_name(name, tuple(ModelOptions.model_fields), where, "there are")
            found.setdefault(role, {})[name] = check_setting(ModelOptions, name, value, where)
    return found


def model_names_in(models: Any) -> dict[str, str]:
    """Return the model names in the table `models`, by role; invalid entries are ignored."""
    tables = models.items() if isinstance(models, dict) else ()
    found = {role: table.get(MODEL) for role, table in tables if isinstance(table, dict)}
    return {role: name for role, name in found.items() if isinstance(name, str)}


def option_variables() -> frozenset[str]:
    """Return the names of all environment variables that configure a role."""
    names = (*(name.upper() for name in ModelOptions.model_fields), *ENDPOINT_VARIABLES)
    return frozenset(f"PACKETGATE_{role.upper()}_{name}" for role in ROLES for name in names)


def _check_name(name: str, known: tuple[str, ...], where: str, list_prefix: str, what: str = "option") -> None:
    if name in known:
        return
    near = get_close_matches(name, known, n=2, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"{list_prefix} {', '.join(known)}"
    raise ConfigError(f"{where}: unknown {what} {name!r}: {hint}")
