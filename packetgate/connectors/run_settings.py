"""Settings of a run: `--set` and switches, over `PACKETGATE_...`, over `[settings]` of the file, over defaults."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from packetgate.graph.settings import Settings
from packetgate.models.options import option_variables
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError
from packetgate.state.setting_values import SettingValue, check_setting, parse_setting
from packetgate.tools.catalogue.config_file import read_config_file

_FIELDS = RoutingContext.model_fields
ENV_PREFIX = "PACKETGATE_"
FLAGS = {
    "allow_write_tools": {True: "--allow-writes", False: "--no-writes"},
    "allow_execute_tools": {True: "--allow-commands", False: "--no-commands"},
}
"""Settings with their own command-line options, by value."""


@dataclass(frozen=True)
class RunSettings:
    """The effective settings and their sources."""

    context: RoutingContext
    for_others: RoutingContext
    """The settings for other users, on Discord or through the proxy.

    Variables, and the file's switches for writes and commands, may only restrict them.
    """
    sources: dict[str, str]
    """The source of each setting that is not a default."""

    @property
    def ignored_sources(self) -> tuple[str, ...]:
        """Sources with values that would allow other users more. Such values are ignored for other users."""
        return tuple(
            where
            for name, where in self.sources.items()
            if getattr(self.context, name) != getattr(self.for_others, name)
        )


def run_settings(path: Path | None, overrides: Sequence[str] = (), **switches: bool | None) -> RunSettings:
    """Merge the settings of `packetgate.toml` at `path`, the environment, `--set` options and switches.

    Raises:
        ConfigError: an unknown setting, an invalid value, or two options that contradict each other.
    """
    file = _from_file(path)
    options = _from_options(overrides, switches)
    values = file | _from_environment() | options
    context = _context(values)
    for_others = {name: setting for name, setting in file.items() if name not in FLAGS or not setting.value} | options
    return RunSettings(
        context, context.restricted_by(_context(for_others)), {name: setting.where for name, setting in values.items()}
    )


def _context(values: Mapping[str, SettingValue]) -> RoutingContext:
    return RoutingContext.model_validate({name: setting.value for name, setting in values.items()})


def _from_file(path: Path | None) -> dict[str, SettingValue]:
    table = {} if path is None else read_config_file(path).get("settings", {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: settings: must be a table: write [settings]")
    values = {}
    for name, value in table.items():
        where = f"{path}: settings.{name}"
        _check_name(name, where)
        values[name] = check_setting(RoutingContext, name, value, where)
    return values


def _from_environment() -> dict[str, SettingValue]:
    known = {f"{ENV_PREFIX}{name.upper()}": name for name in _FIELDS}
    others = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields} | option_variables()
    values = {}
    for variable, text in os.environ.items():
        if variable in known:
            values[known[variable]] = parse_setting(RoutingContext, known[variable], text, variable)
        elif variable.upper().startswith(ENV_PREFIX) and variable.upper() not in others:
            name = variable.upper().removeprefix(ENV_PREFIX)
            if near := get_close_matches(name, map(str.upper, _FIELDS), n=1, cutoff=0.7):
                raise ConfigError(f"{variable}: unknown setting: did you mean {ENV_PREFIX}{near[0]}? If not, unset it")
    return values


def _from_options(overrides: Sequence[str], switches: Mapping[str, bool | None]) -> dict[str, SettingValue]:
    values = {name: SettingValue(value, FLAGS[name][value]) for name, value in switches.items() if value is not None}
    for option in overrides:
        name, equals, text = option.partition("=")
        name = name.strip()
        if not equals:
            raise ConfigError(f"--set {option[:60]}: expected KEY=VALUE, such as --set confidence_threshold=0.8")
        _check_name(name, f"--set {name[:60]}")
        value = parse_setting(RoutingContext, name, text, f"--set {name}")
        before = values.setdefault(name, value)
        if before.value != value.value:
            earlier = json.dumps(before.value)
            raise ConfigError(f"--set {option[:60]} contradicts {before.where} ({earlier}): leave one of them out")
    return values


def _check_name(name: str, where: str) -> None:
    if name not in _FIELDS:
        near = get_close_matches(name, _FIELDS, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(_FIELDS)}"
        raise ConfigError(f"{where}: unknown setting: {hint}")
