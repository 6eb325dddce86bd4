"""Settings files of other MCP clients: find them, read them, and change one key and nothing else."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packetgate.state.errors import ConfigError
from packetgate.tools.servers.config import UnusableEntryError, read_server_entry
from packetgate.tools.text.documents import read_json_text, replace_json_value

CLIENTS = ("claude-desktop", "claude-code", "cursor", "vscode")
ENTRY = "packetgate"
"""The name of the proxy's entry in a client's settings."""


@dataclass(frozen=True)
class SettingsPlace:
    """The JSON file and key under which a client keeps its servers."""

    file: Path
    key: str = "mcpServers"

    @property
    def backup(self) -> Path:
        """The path of the backup of the client's settings."""
        return self.file.with_name(f"{self.file.name}.before-packetgate")


def place_of(client: str, home: Path | None = None, system: str = sys.platform) -> SettingsPlace:
    """Return the settings file and the key of a client's servers. Raise ConfigError for an unknown client."""
    home = home or Path.home()
    data = {
        "darwin": home / "Library" / "Application Support",
        "win32": Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming"),
    }.get(system, Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config"))
    places: Mapping[str, SettingsPlace] = {
        "claude-desktop": SettingsPlace(data / "Claude" / "claude_desktop_config.json"),
        "claude-code": SettingsPlace(home / ".claude.json"),
        "cursor": SettingsPlace(home / ".cursor" / "mcp.json"),
        "vscode": SettingsPlace(data / "Code" / "User" / "mcp.json", key="servers"),
    }
    if client not in places:
        raise ConfigError(
            f"--install {client}: unknown client: use {', '.join(CLIENTS)}; for any other client, copy the output of "
            f"`packetgate proxy --install {CLIENTS[0]} --print` into its settings"
        )
    return places[client]


def is_ours(entry: Any) -> bool:
    """Whether `packetgate proxy --install` wrote an entry."""
    try:
        return {"proxy", "--client"} <= {*read_server_entry(entry).fields.get("args", ())}
    except UnusableEntryError:
        return False


@dataclass(frozen=True)
class SettingsFile:
    """A client's settings file, as read from disk."""

    path: Path
    text: str
    """Empty if the file does not exist."""
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> "SettingsFile":
        """Read a JSON file, comments allowed; a missing file is an empty document. Raise ConfigError on failure."""
        try:
            text = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
            document = read_json_text(text) if text.strip() else {}
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path}: cannot be read: {error}") from error
        if not isinstance(document, dict):
            raise ConfigError(f"{path}: must be an object, not {type(document).__name__}")
        return cls(path, text, document)

    def servers(self, key: str) -> dict[str, Any]:
        """Return the servers under a key. Raise ConfigError if they are not an object."""
        servers = self.document.get(key) or {}
        if not isinstance(servers, dict):
            raise ConfigError(f"{self.path}: {key}: must be an object of servers by name: nothing was changed")
        return servers

    def changed(self, key: str, value: Mapping[str, Any]) -> str:
        """Return the text with a new object under a key, all else unchanged. Raise ConfigError if impossible."""
        try:
            text = replace_json_value(self.text if self.text.strip() else "{\n}\n", key, value)
            is_same = read_json_text(text) == {**self.document, key: value}
        except (ValueError, TypeError, RecursionError) as error:
            raise ConfigError(f"{self.path}: cannot be changed: {error}: nothing was changed") from error
        if not is_same:
            raise ConfigError(f"{self.path}: cannot change {key} alone, so nothing was changed: edit it by hand")
        return text


def write(path: Path, text: str) -> None:
    """Write a file atomically, following links; only its owner can read a new file. Raise ConfigError on failure."""
    try:
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        temporary = path.with_name(f"{path.name}.writing")
        temporary.touch(mode=0o600)
        temporary.write_bytes(text.encode())
        temporary.chmod(mode)
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path}: cannot be written: {error}") from error
