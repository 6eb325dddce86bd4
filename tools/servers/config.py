"""`mcp.json`: which servers there are, in the `mcpServers` form that MCP clients share."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from state.errors import ConfigError, ServerError
from tools.catalogue.preferences import read_file

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class ServerConfig:
    """One server."""

    name: str
    entry: dict[str, Any]
    """As written: variables are filled in when the server is started."""
    source: str = "mcp.json"
    """The file it stands in."""

    @property
    def trusted(self) -> bool:
        """Whether the server's annotations may lower a tool's risk."""
        return self.entry.get("trusted") is True

    @property
    def timeout_s(self) -> float | None:
        """Longest wait for an answer, in seconds; None for the default."""
        milliseconds = self.entry.get("timeout")
        return float(milliseconds) / 1000 if isinstance(milliseconds, int | float) else None

    def filled(self) -> dict[str, Any]:
        """Return the entry with every `${NAME}` replaced by the environment variable: secrets stay out of the file.

        Raises:
            ServerError: a variable is not set.
        """
        entry: dict[str, Any] = _filled(self.entry)
        return entry

    def variables(self) -> dict[str, str]:
        """Return the environment variables that are filled in."""
        return {name: os.environ.get(name, "") for name in _VARIABLE.findall(json.dumps(self.entry))}

    def concealed(self, text: str) -> str:
        """Return a text with `${NAME}` for every value that was filled in."""
        for name, value in self.variables().items():
            for spelled in {value, quote(value), quote(value, safe=""), repr(value)[1:-1]} - {""}:
                text = text.replace(spelled, f"${{{name}}}")
        return text


@dataclass(frozen=True)
class McpConfig:
    """The configured servers."""

    servers: tuple[ServerConfig, ...] = ()
    builtin: bool = True
    """Whether the built-in servers are offered: with no servers configured, or when the file says `"builtin": true`."""
    source: str = "built in"


def load_config(path: Path | None) -> McpConfig:
    """Read `mcp.json`; without a path, the built-in servers alone.

    Raises:
        ConfigError: the file is missing, is not JSON, or does not have the expected form.
    """
    if path is None:
        return McpConfig()
    mend = "--mcp-config or PACKETGATE_MCP_CONFIG, or leave both out to use the built-in tools"
    document = read_file(path, "JSON", mend)
    if not isinstance(document, dict):
        raise ConfigError(f'{path}: must be an object with "mcpServers", not {type(document).__name__}')
    servers, builtin = document.get("mcpServers", {}), document.get("builtin", False)
    if not isinstance(servers, dict):
        raise ConfigError(f'{path}: "mcpServers" must be an object of servers by name, not {type(servers).__name__}')
    if not isinstance(builtin, bool):
        raise ConfigError(f'{path}: "builtin" must be true or false, not {builtin!r}')
    if not servers and not builtin:
        raise ConfigError(
            f'{path}: no servers under "mcpServers": add one, or remove the file to use the built-in tools'
        )
    return McpConfig(
        servers=tuple(_server(path, name, entry) for name, entry in servers.items()),
        builtin=builtin,
        source=str(path),
    )


def _server(path: Path, name: str, entry: Any) -> ServerConfig:
    where = f"{path}: server {name!r}"
    if not _SERVER_NAME.fullmatch(name):
        raise ConfigError(f"{where}: a server's name may only have letters, digits, - and _")
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: must be an object, not {type(entry).__name__}")
    kinds = [key for key in ("command", "url") if isinstance(entry.get(key), str) and entry[key].strip()]
    if len(kinds) != 1:
        raise ConfigError(f'{where}: needs either a "command" to start or a "url" to reach, as text')
    if kinds == ["url"] and not entry["url"].startswith(("http://", "https://", "${")):
        raise ConfigError(f'{where}: "url" must start with http:// or https://, not {entry["url"]!r}')
    timeout = entry.get("timeout")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int) or timeout <= 0):
        raise ConfigError(f'{where}: "timeout" must be a whole number of milliseconds above 0, not {timeout!r}')
    if not isinstance(entry.get("trusted", False), bool):
        raise ConfigError(f'{where}: "trusted" must be true or false, not {entry["trusted"]!r}')
    return ServerConfig(name, entry, source=str(path))


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner) for inner in value]
    return _VARIABLE.sub(_variable, value) if isinstance(value, str) else value


def _variable(match: re.Match[str]) -> str:
    try:
        return os.environ[match[1]]
    except KeyError as error:
        raise ServerError(f"the environment variable {match[1]} is not set: set it, or take it out") from error
