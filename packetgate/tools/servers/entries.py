"""Read one entry of `mcp.json`, from the form of any client into one form, and fill in its variables."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packetgate.state.errors import ServerError

MIN_TIMEOUT_MS = 1000
"""A smaller time-out is in seconds: no server starts in so few milliseconds."""

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "command": ("command", "cmd"),
    "args": ("args",),
    "env": ("env", "envs", "environment"),
    "cwd": ("cwd",),
    "url": ("httpurl", "url", "serverurl", "uri"),
    "headers": ("headers", "httpheaders"),
    "transport": ("transport", "type"),
}
"""Aliases of fields, ignoring case, `_` and `-`; the first one present is used."""
_TRANSPORTS = {
    **dict.fromkeys(("stdio", "local"), "stdio"),
    **dict.fromkeys(("http", "streamablehttp", "remote"), "http"),
    "sse": "sse",
}
_TIMEOUT_UNITS_MS = {"timeout": 1, "timeoutms": 1, "tooltimeoutsec": 1000}
_READ = frozenset({name for names in _ALIASES.values() for name in names} | {*_TIMEOUT_UNITS_MS, "trusted"})
"""Fields that are read; all others are kept unchanged."""
_OFFERED = ("includetools", "enabledtools", "allowedtools", "tools")
_HIDDEN = ("excludetools", "disabledtools")

_VARIABLE = re.compile(
    r"\$\{(?:(?P<folder>workspaceFolder|userHome)|(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::?-(?P<default>[^}]*))?)\}"
)
_EDITOR_VARIABLE = re.compile(r"\$\{((?:input|command|config|secret|prompt):[^}]*)\}")


class UnusableEntryError(ValueError):
    """An entry cannot be used; the message says why."""


@dataclass(frozen=True)
class ServerEntry:
    """An entry in canonical form."""

    fields: dict[str, Any]
    """`command`, `args`, `env`, `cwd`, or `url`, `headers`, `transport`; other fields unchanged."""
    enabled: bool = True
    tools: tuple[str, ...] = ()
    """Patterns of the tools to offer; empty: all."""
    hidden_tools: tuple[str, ...] = ()
    """Patterns of tools to hide."""
    notes: tuple[str, ...] = ()
    """One phrase for each value that was interpreted."""

    @property
    def server(self) -> dict[str, Any]:
        """The fields that identify the server."""
        return {key: self.fields.get(key) for key in _ALIASES if key != "transport"}


def looks_like_entry(value: Any) -> bool:
    """Whether a value is an object with a command or a URL."""
    known = {*_ALIASES["command"], *_ALIASES["url"]}
    return isinstance(value, dict) and any(_plain(key) in known for key in value)


def read_server_entry(raw: Any) -> ServerEntry:
    """Return an entry in canonical form.

    Raises:
        UnusableEntryError: it has no server, or a value of the wrong type.
    """
    if not isinstance(raw, dict):
        raise UnusableEntryError(f"must be an object, not {type(raw).__name__}")
    if match := next(filter(None, map(_EDITOR_VARIABLE.search, _texts(raw))), None):
        raise UnusableEntryError(f"an editor asks for ${{{match[1]}}}: write ${{NAME}} and set that variable")
    if isinstance(raw.get("transport"), dict):  # as Cline's command writes it
        raw = {**raw, "transport": None, **raw["transport"]}
    raw = {key: value for key, value in raw.items() if value is not None and value != ""}
    named = {_plain(key): value for key, value in reversed(raw.items())}
    notes: list[str] = []
    fields = {**_server_fields(named), "timeout": _timeout_ms(named, notes), "trusted": _trusted(named, notes)}
    others = {key: value for key, value in raw.items() if _plain(key) not in _READ}
    kept = {key: value for key, value in fields.items() if value not in (None, [], {})}
    switches = [named.get(name, True) for name in ("enabled", "isactive", "active")]
    enabled = all(str(one).lower() == "true" for one in switches) and named.get("disabled", False) in (False, "false")
    return ServerEntry({**others, **kept}, enabled, _names(named, _OFFERED), _names(named, _HIDDEN), tuple(notes))


def variables_in(entry: Any) -> dict[str, str]:
    """Return the environment variables of an entry with their values; empty if not set."""
    names = [match["name"] for text in _texts(entry) for match in _VARIABLE.finditer(text) if match["name"]]
    return {name: os.environ.get(name, "") for name in names}


def with_variables(value: Any, folder: Path) -> Any:
    """Return an entry with its variables filled in; `folder` is the workspace.

    Raises:
        ServerError: a variable is not set and has no default.
    """
    if isinstance(value, dict):
        return {key: with_variables(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_variables(inner, folder) for inner in value]
    return _VARIABLE.sub(lambda match: _variable(match, folder), value) if isinstance(value, str) else value


def _variable(match: re.Match[str], folder: Path) -> str:
    if match["folder"]:
        return str(Path.home() if match["folder"] == "userHome" else folder.absolute())
    name, default = match["name"], match["default"]
    value = os.environ.get(name)
    if value is None and default is None:
        raise ServerError(f"the environment variable {name} is not set: set it, or take it out")
    return value or default or ""


def _server_fields(named: Mapping[str, Any]) -> dict[str, Any]:
    command, url = _get(named, "command"), _get(named, "url")
    transport = _TRANSPORTS.get(_plain(str(_get(named, "transport"))))
    if isinstance(url, str) and (command is None or transport in {"http", "sse"}):
        if not url.startswith(("http://", "https://", "${")):
            raise UnusableEntryError(f'"url" must start with http:// or https://, not {url[:60]!a}')
        headers = _text_values("headers", _get(named, "headers"))
        if isinstance(variable := named.get("bearertokenenvvar"), str):
            headers.setdefault("Authorization", f"Bearer ${{{variable}}}")
        return {"url": url, "headers": headers, "transport": transport if transport != "stdio" else None}
    if not command:
        raise UnusableEntryError('needs either a "command" to start or a "url" to reach, as text')
    if not isinstance(command, str | list):
        raise UnusableEntryError(f'"command" must be text, not {type(command).__name__}')
    program, *args = _text_list("command", command if isinstance(command, list) else [command])
    args += _text_list("args", _get(named, "args") or [])
    cwd = _get(named, "cwd")
    env = _text_values("env", _get(named, "env"))
    return {"command": program, "args": args, "env": env, "cwd": None if cwd is None else _text("cwd", cwd)}


def _get(named: Mapping[str, Any], field: str) -> Any:
    return next((named[alias] for alias in _ALIASES[field] if alias in named), None)


def _text(where: str, value: Any) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if not isinstance(value, str):
        raise UnusableEntryError(f'"{where}" must be text, not {type(value).__name__}')
    return value


def _text_list(field: str, values: Any) -> list[str]:
    if not isinstance(values, list):
        raise UnusableEntryError(f'"{field}" must be a list of texts, not {type(values).__name__}')
    return [_text(f"{field}.{number}", value) for number, value in enumerate(values) if value is not None]


def _text_values(field: str, values: Any) -> dict[str, str]:
    if not isinstance(values, dict | None):
        raise UnusableEntryError(f'"{field}" must be an object of texts by name, not {type(values).__name__}')
    return {name: _text(f"{field}.{name}", value) for name, value in (values or {}).items() if value is not None}


def _timeout_ms(named: Mapping[str, Any], notes: list[str]) -> int | None:
    field = next((field for field in _TIMEOUT_UNITS_MS if field in named), None)
    if field is None:
        return None
    value = named[field]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**12:
        notes.append(f"timeout {ascii(value)[:60]} is not a number of milliseconds: the default applies")
        return None
    milliseconds = value * _TIMEOUT_UNITS_MS[field]
    if milliseconds < MIN_TIMEOUT_MS:
        notes.append(f"timeout {value} is read as {value:g} seconds")
        milliseconds *= 1000
    return max(1, round(milliseconds))


def _trusted(named: Mapping[str, Any], notes: list[str]) -> bool | None:
    value = named.get("trusted")
    if not isinstance(value, bool | None):
        notes.append(f'"trusted" must be true or false, not {ascii(value)[:60]}: it is not trusted')
        return None
    return value


def _names(named: Mapping[str, Any], fields: tuple[str, ...]) -> tuple[str, ...]:
    lists = [named[field] for field in fields if isinstance(named.get(field), list)]
    return tuple(name for names in lists for name in names if isinstance(name, str))


def _plain(name: str) -> str:
    return re.sub(r"[_\s-]", "", name).casefold()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
