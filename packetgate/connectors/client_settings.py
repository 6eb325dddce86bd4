"""Settings files of other MCP clients: find and read them, and install the proxy in place of their servers."""

import json
import os
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packetgate.connectors.shell_commands import program_path, setting_variables
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError
from packetgate.tools.text.documents import DOCUMENT_READERS
from packetgate.toolsets.builtin.appeared import confirm
from packetgate.toolsets.servers.config import UnusableEntryError, read_server_entry, server_entries

CLIENTS = ("claude-desktop", "claude-code", "cursor", "vscode", "codex", "gemini-cli")
ENTRY = "packetgate"
"""The name of the proxy's entry in a client's settings."""


@dataclass(frozen=True)
class SettingsPlace:
    """The file, JSON or TOML, and key under which a client keeps its servers."""

    file: Path
    key: str = "mcpServers"

    @property
    def backup(self) -> Path:
        """The path of the backup of the client's settings."""
        return self.file.with_name(f"{self.file.name}.before-packetgate")


def settings_place(client: str, home: Path | None = None, system: str = sys.platform) -> SettingsPlace:
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
        "codex": SettingsPlace(Path(os.environ.get("CODEX_HOME") or home / ".codex") / "config.toml", "mcp_servers"),
        "gemini-cli": SettingsPlace(home / ".gemini" / "settings.json"),
    }
    if client not in places:
        raise ConfigError(
            f"--install {client}: unknown client: use {', '.join(CLIENTS)}; for any other client, copy the output of "
            f"`packetgate proxy --install {CLIENTS[0]} --print` into its settings"
        )
    return places[client]


def is_proxy_entry(entry: Any) -> bool:
    """Whether `packetgate proxy --install` wrote an entry."""
    try:
        return {"proxy", "--client"} <= {*read_server_entry(entry).fields.get("args", ())}
    except UnusableEntryError:
        return False


def is_same_server(entry: Any, other_entry: Any) -> bool:
    """Whether two entries describe the same server, even if they are written differently."""
    try:
        return entry == other_entry or read_server_entry(entry).server == read_server_entry(other_entry).server
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
        """Read a file, JSON with comments or TOML; a missing file is empty. Raise ConfigError on failure."""
        try:
            text = (path.read_bytes() if path.exists() else b"").decode("utf-8-sig")
            read = DOCUMENT_READERS["TOML" if path.suffix == ".toml" else "JSON"]
            document = read(text) if text.strip() else {}
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

    def text_with(self, key: str, value: Mapping[str, Any]) -> str:
        """Return the text with `value` under `key`. Raise ConfigError if something would be lost, such as comments."""
        try:
            if self.path.suffix == ".toml":
                text = self._toml_with(key, value)
            else:
                json.loads(self.text or "{}")
                text = json.dumps({**self.document, key: value}, indent=2, ensure_ascii=False, allow_nan=False)
            text.encode()  # a lone surrogate cannot be encoded
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"{self.path}: cannot be changed without losing data, such as comments: nothing was changed; edit it "
                "by hand: `packetgate proxy --install CLIENT --print` shows the entry"
            ) from error
        return f"{text}\n"

    def _toml_with(self, key: str, value: Mapping[str, Any]) -> str:
        """Return the text without the tables under `key` that `value` changes, and with new ones at the end."""
        before, kept, stays = self.servers(key), "", True
        for line in self.text.splitlines(keepends=True):
            if line.lstrip().startswith("["):
                with suppress(ValueError):  # a line within a list or a text
                    name = next(iter(tomllib.loads(line).get(key, ())), None)
                    stays = name is None or before.get(name) == value.get(name)
            kept += line * stays
        for name in (name for name in value if before.get(name) != value[name]):
            fields = (f"{field} = {_toml(part)}\n" for field, part in value[name].items())
            kept = f"{kept.rstrip()}\n\n[{key}.{_toml(name)}]\n{''.join(fields)}"
        if tomllib.loads(kept) != {**self.document, key: value}:
            raise ValueError("its servers are not written as tables")
        return kept.strip()


def _toml(value: str | list[str] | dict[str, str]) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_toml(name)} = {_toml(part)}' for name, part in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


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


def entry_for(
    client: str, settings: Settings, options: Sequence[str] = (), *, has_servers: bool = False
) -> dict[str, Any]:
    """Return the settings entry with which a client starts the proxy, in this folder, with more `options`."""
    config = _config(settings)
    servers = ["--mcp-config", str(config)] if has_servers or config.exists() else []
    paths = {"root": settings.root, "home": settings.home, "config": settings.preferences_path}
    env = {name: value for name, value in setting_variables(settings).items() if name != "PACKETGATE_MCP_CONFIG"}
    for name, path in paths.items():
        if path is not None and (name != "home" or name in settings.model_fields_set):
            env[f"PACKETGATE_{name.upper()}"] = str(path.absolute())
    args = ["proxy", "--folder", str(Path.cwd()), *servers, "--client", client, *options]
    return {"command": program_path(), "args": args, "env": env}


def install(client: str, place: SettingsPlace, settings: Settings, options: Sequence[str] = ()) -> list[str]:
    """Replace the servers in a client's settings with the proxy, and move them into `mcp.json`.

    Unreadable entries stay. All files are checked before the first write. Return lines that report the changes.

    Raises:
        ConfigError: a file cannot be used, or `mcp.json` has another server of the same name.
    """
    theirs, ours = SettingsFile.read(place.file), SettingsFile.read(_config(settings))
    known, before = server_entries(ours.document), theirs.servers(place.key)
    new: dict[str, Any] = {}
    staying: dict[str, Any] = {}
    lines: list[str] = []
    for name, entry in before.items():
        if name == ENTRY:
            continue
        try:
            read_server_entry(entry)
        except UnusableEntryError as error:
            staying[name] = entry
            lines.append(f"{theirs.path}: {name!r} was not moved: {error}")
            continue
        if name in known and not is_same_server(known[name], entry):
            raise ConfigError(f"{ours.path}: {name!r} differs from the client's server of that name: rename one")
        if name not in known:
            new[name] = json.loads(json.dumps(entry, default=str))
    ours_changed = ours.text_with("mcpServers", {**ours.servers("mcpServers"), **new}) if new else ""
    entry = entry_for(client, settings, options, has_servers=bool(new))
    installed = theirs.text_with(place.key, {**staying, ENTRY: entry})
    if theirs.text and not is_proxy_entry(before.get(ENTRY)):
        write(place.backup, theirs.text)
        undo = shlex.join(["cp", str(place.backup.absolute()), str(place.file.absolute())])
        lines.append(f"{place.backup}: saved the old settings here; to uninstall: {undo}")
    if new:
        write(ours.path, ours_changed)
        confirm(ours.path, settings.home)
        lines.append(f"{ours.path}: added {', '.join(new)}")
    write(place.file, installed)
    return [*lines, f"{place.file}: added {ENTRY}; restart {client}"]


def _config(settings: Settings) -> Path:
    return (settings.config_path or settings.root / "mcp.json").absolute()
