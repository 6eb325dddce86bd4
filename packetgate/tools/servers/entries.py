"""Read one entry of `mcp.json`, and fill in its variables."""

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

_TRANSPORTS = {"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse"}
_READ = frozenset({"command", "args", "env", "cwd", "url", "headers", "transport", "type", "timeout", "trusted"})
"""Fields that are read; all others are kept unchanged."""

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
        return {key: self.fields.get(key) for key in ("command", "args", "env", "cwd", "url", "headers")}


def read_server_entry(raw: Any) -> ServerEntry:
    """Return an entry in canonical form.

    Raises:
        UnusableEntryError: the entry has no server, or a value of the wrong type.
    """
    if not isinstance(raw, dict):
        raise UnusableEntryError(f"must be an object, not {type(raw).__name__}")
    if match := next(filter(None, map(_EDITOR_VARIABLE.search, _texts(raw))), None):
        raise UnusableEntryError(f"an editor asks for ${{{match[1]}}}: write ${{NAME}} and set that variable")
    raw = {key: value for key, value in raw.items() if value is not None and value != ""}
    notes: list[str] = []
    fields = {**_server_fields(raw), "timeout": _timeout_ms(raw, notes), "trusted": _trusted(raw, notes)}
    others = {key: value for key, value in raw.items() if key not in _READ}
    kept = {key: value for key, value in fields.items() if value not in (None, [], {})}
    enabled = raw.get("enabled", True) is True and raw.get("disabled", False) is False
    tools, hidden_tools = _names(raw.get("includeTools")), _names(raw.get("excludeTools"))
    return ServerEntry({**others, **kept}, enabled, tools, hidden_tools, tuple(notes))


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


def _server_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    command, url = raw.get("command"), raw.get("url")
    transport = _TRANSPORTS.get(str(raw.get("transport", raw.get("type"))))
    if isinstance(url, str) and (command is None or transport in {"http", "sse"}):
        if not url.startswith(("http://", "https://", "${")):
            raise UnusableEntryError(f'"url" must start with http:// or https://, not {url[:60]!a}')
        headers = _text_values("headers", raw.get("headers"))
        return {"url": url, "headers": headers, "transport": transport if transport != "stdio" else None}
    if not command:
        raise UnusableEntryError('needs either a "command" to start or a "url" to reach, as text')
    if not isinstance(command, str):
        raise UnusableEntryError(f'"command" must be text, not {type(command).__name__}')
    args, env = _text_list("args", raw.get("args", [])), _text_values("env", raw.get("env"))
    return {"command": command, "args": args, "env": env, "cwd": _text("cwd", raw["cwd"]) if "cwd" in raw else None}


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


def _timeout_ms(raw: Mapping[str, Any], notes: list[str]) -> int | None:
    value = raw.get("timeout")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**12:
        notes.append(f"timeout {ascii(value)[:60]} is not a number of milliseconds: the default applies")
        return None
    if value < MIN_TIMEOUT_MS:
        notes.append(f"timeout {value} is read as {value:g} seconds")
        value *= 1000
    return max(1, round(value))


def _trusted(raw: Mapping[str, Any], notes: list[str]) -> bool | None:
    value = raw.get("trusted")
    if not isinstance(value, bool | None):
        notes.append(f'"trusted" must be true or false, not {ascii(value)[:60]}: it is not trusted')
        return None
    return value


def _names(names: Any) -> tuple[str, ...]:
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
