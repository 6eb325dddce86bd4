"""The settings of a run: `--set` and switches, over `PACKETGATE_...`, over `[settings]` of the file, over defaults."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from packetgate.graph.settings import Settings
from packetgate.models.options import variables
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError
from packetgate.state.setting_values import SettingValue, check_setting, parse_setting
from packetgate.tools.catalogue.preferences import read_file

FIELDS = RoutingContext.model_fields
PREFIX = "PACKETGATE_"
SWITCHES = {
    "allow_write_tools": {True: "--allow-writes", False: "--no-writes"},
    "allow_execute_tools": {True: "--allow-commands", False: "--no-commands"},
}
"""Options with names of their own."""

NEAR = 0.7
"""Similarity from which a variable's name counts as a misspelt setting."""


@dataclass(frozen=True)
class RunSettings:
    """The effective settings and their sources."""

    context: RoutingContext
    for_others: RoutingContext
    """The settings for other users, on Discord or through the proxy.

    Variables, and the file's switches for writes and commands, may allow them less, and never more.
    """
    sources: dict[str, str]
    """The source of each setting that is not a default."""

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Sources that would allow other users more; for them only their restrictions count."""
        return tuple(
            where
            for name, where in self.sources.items()
            if getattr(self.context, name) != getattr(self.for_others, name)
        )


def run_settings(path: Path | None, chosen: Sequence[str] = (), **switches: bool | None) -> RunSettings:
    """Merge the settings from all sources.

    Args:
        path: the `packetgate.toml`.
        chosen: what `--set` was given, each as `key=value`.
        switches: by setting, what its own option says; None where it was not given.

    Raises:
        ConfigError: there is no such setting, it does not take that value, or two options contradict each other.
    """
    file, variables = _from_file(path), _from_environment(os.environ)
    for_all = {name: one for name, one in file.items() if name not in SWITCHES or not one.value}
    options = _from_options(chosen, switches)
    given = file | variables | options
    context = _context(given)
    return RunSettings(
        context, context.restricted_by(_context(for_all | options)), {name: one.where for name, one in given.items()}
    )


def _context(given: Mapping[str, SettingValue]) -> RoutingContext:
    return RoutingContext.model_validate({name: one.value for name, one in given.items()})


def _from_file(path: Path | None) -> dict[str, SettingValue]:
    table = {} if path is None else read_file(path).get("settings", {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: settings: it must be a table: [settings]")
    given = {}
    for name, value in table.items():
        where = f"{path}: settings.{name}"
        _check_name(name, where)
        given[name] = check_setting(RoutingContext, name, value, where)
    return given


def _from_environment(environment: Mapping[str, str]) -> dict[str, SettingValue]:
    known = {f"{PREFIX}{name.upper()}": name for name in FIELDS}
    others = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | variables()
    given = {}
    for variable, text in environment.items():
        upper = variable.upper()
        if variable in known:
            given[known[variable]] = parse_setting(RoutingContext, known[variable], text, variable)
        elif upper.startswith(PREFIX) and upper not in others:
            _check_is_no_slip(variable, known)
    return given


def _check_is_no_slip(variable: str, known: Iterable[str]) -> None:
    name = variable.upper().removeprefix(PREFIX)
    near = get_close_matches(name, [one.removeprefix(PREFIX) for one in known], n=1, cutoff=NEAR)
    if near:
        raise ConfigError(f"{variable}: there is no such setting: did you mean {PREFIX}{near[0]}? If not, unset it")


def _from_options(chosen: Sequence[str], switches: Mapping[str, bool | None]) -> dict[str, SettingValue]:
    given = {name: SettingValue(value, SWITCHES[name][value]) for name, value in switches.items() if value is not None}
    for one in chosen:
        name, is_set, text = one.partition("=")
        name = name.strip()
        if not is_set:
            raise ConfigError(f"--set {one[:60]}: it takes key=value, such as --set confidence_threshold=0.8")
        _check_name(name, f"--set {name[:60]}")
        said = parse_setting(RoutingContext, name, text, f"--set {name}")
        before = given.setdefault(name, said)
        if before.value != said.value:
            raise ConfigError(f"{said.where}={text.strip()[:60]} contradicts {_again(before)}: leave one of them out")
    return given


def _again(given: SettingValue) -> str:
    is_switch = not given.where.startswith("--set")
    return given.where if is_switch else f"{given.where}={_shown(given.value)}"


def _shown(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else json.dumps(value)


def _check_name(name: str, where: str) -> None:
    if name in FIELDS:
        return
    near = get_close_matches(name, FIELDS, n=2, cutoff=0.5)
    way_out = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(FIELDS)}"
    raise ConfigError(f"{where}: there is no such setting: {way_out}")
