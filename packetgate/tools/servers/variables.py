"""Fill in `${...}` in `mcp.json`: environment variables and the folders that editors define."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packetgate.state.errors import ServerError

_VARIABLE = re.compile(
    r"\$\{(?:(?P<place>workspaceFolderBasename|workspaceFolder|workspaceRoot|userHome|cwd|pathSeparator|/)(?::[^}]*)?"
    r"|(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::?-(?P<default>[^}]*))?)\}"
)
_BARE = re.compile(r"\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
"""Form of Gemini CLI: a variable if it is a whole value of `env` or `headers` and is set."""
_ASKED = re.compile(r"\$\{((?:input|command|config|secret|prompt):[^}]*)\}")
"""Values that an editor asks for or supplies."""


def asked_for(entry: Any) -> str:
    """Return the first variable that only an editor can fill in, such as `input:key`; empty if none."""
    return next((match[1] for text in _texts(entry) if (match := _ASKED.search(text))), "")


def variables_in(entry: Any) -> dict[str, str]:
    """Return the environment variables of an entry with their values; empty if not set."""
    names = [match["name"] for text in _texts(entry) for match in _VARIABLE.finditer(text) if match["name"]]
    bare = [match["name"] for text in _texts(entry) if (match := _BARE.fullmatch(text))]
    return {name: os.environ.get(name, "") for name in [*names, *bare]}


def filled(entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return an entry with its variables filled in; `folder` is the workspace.

    Raises:
        ServerError: a variable is not set and has no default.
    """
    done = {key: _filled(value, folder) for key, value in entry.items()}
    for key in ("env", "headers"):
        if isinstance(done.get(key), dict):
            done[key] = {name: _bare(value) for name, value in done[key].items()}
    return done


def _filled(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, folder) for inner in value]
    return _VARIABLE.sub(lambda match: _value(match, folder), value) if isinstance(value, str) else value


def _value(match: re.Match[str], folder: Path) -> str:
    if match["place"]:
        return _place(match["place"], folder)
    name, default = match["name"], match["default"]
    value = os.environ.get(name)
    if value or (value is not None and default is None):
        return value
    if default is None:
        raise ServerError(f"the environment variable {name} is not set: set it, or take it out")
    return default


def _place(name: str, folder: Path) -> str:
    match name:
        case "userHome":
            return str(Path.home())
        case "pathSeparator" | "/":
            return os.sep
        case "workspaceFolderBasename":
            return folder.absolute().name
    return str(folder.absolute())


def _bare(value: Any) -> Any:
    match = _BARE.fullmatch(value) if isinstance(value, str) else None
    return os.environ.get(match["name"], value) if match else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
