"""Settings files of other MCP clients: find them, recognise Packetgate's entry, and change one key and nothing else."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packetgate.state.errors import ConfigError
from packetgate.tools.servers.entries import UnusableEntryError, read_server_entry
from packetgate.tools.text.documents import read_json_text, replace_json_value

CLIENTS = ("claude-desktop", "claude-code", "cursor", "vscode")
ENTRY = "packetgate"
"""The name of the proxy's entry in a client's settings."""
BACKUP_SUFFIX = ".before-packetgate"
MAX_SETTINGS_BYTES = 64_000_000
"""Largest settings file; Claude Code keeps its history in the same file."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class SettingsPlace:
    """The JSON file and key under which a client keeps its servers."""

    file: Path
    key: str = "mcpServers"

    @property
    def backup(self) -> Path:
        """The path of the backup of the client's settings."""
        return self.file.with_name(self.file.name + BACKUP_SUFFIX)


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


def is_same(entry: Any, other_entry: Any) -> bool:
    """Whether two entries describe the same server, even if they are written differently."""
    try:
        return entry == other_entry or read_server_entry(entry).server == read_server_entry(other_entry).server
    except UnusableEntryError:
        return False


@dataclass(frozen=True)
class SettingsFile:
    """A client's settings file, as read from disk."""

    path: Path
    data: bytes | None
    """None if the file does not exist."""
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> "SettingsFile":
        """Read a JSON file; a missing or empty file is an empty document.

        Raises:
            ConfigError: the file cannot be read.
        """
        try:
            data = path.read_bytes() if path.exists() else None
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
        if data is not None and len(data) > MAX_SETTINGS_BYTES:
            raise ConfigError(f"{path}: larger than {MAX_SETTINGS_BYTES // 10**6} MB: nothing was changed")
        return cls.parse(path, data)

    @classmethod
    def parse(cls, path: Path, data: bytes | None) -> "SettingsFile":
        """Parse the content of a file. Raise ConfigError if it cannot be parsed."""
        return cls(path, data, _document(path, data or b""))

    def changed(self, key: str, value: Mapping[str, Any]) -> bytes:
        """Return the file's content with a new object under a key; comments and all other content stay unchanged.

        Raises:
            ConfigError: the key cannot be changed without changing something else.
        """
        data = self.data or b""
        text = _text(self.path, data)
        try:
            content = replace_json_value(text if text.strip() else "{\n}\n", key, value).encode()
            content = (_BOM if data.startswith(_BOM) else b"") + content
            same = _document(self.path, content) == {**self.document, key: value}
        except (ValueError, TypeError, ConfigError) as error:
            raise ConfigError(f"{self.path}: cannot be changed: {error}: nothing was changed") from error
        if not same:
            raise ConfigError(f"{self.path}: cannot change {key} alone, so nothing was changed: edit it by hand")
        return content


def write(path: Path, data: bytes) -> None:
    """Write a file atomically, following links; only the owner can read a new file, because the file may hold secrets.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        temporary = path.with_name(f"{path.name}.writing")
        temporary.touch(mode=0o600)
        temporary.write_bytes(data)
        temporary.chmod(mode)
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path}: cannot be written: {error}") from error


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}: save it as UTF-8") from error


def _document(path: Path, data: bytes) -> dict[str, Any]:
    text = _text(path, data)
    try:
        document = read_json_text(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be an object, not {type(document).__name__}")
    return document
