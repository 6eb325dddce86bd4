"""Install the proxy in a client's settings in place of its servers.

Everything is read, changed and checked before anything is written.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from packetgate.connectors.client_settings import ENTRY, SettingsFile, SettingsPlace, is_ours, is_same, write
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError
from packetgate.tools.servers.config import entries_in
from packetgate.tools.servers.entries import UnusableEntryError, read_server_entry


def entry_for(client: str, settings: Settings, *, has_servers: bool = False) -> dict[str, Any]:
    """Return the settings entry with which a client starts the proxy from any folder.

    Without an `mcp.json` the proxy serves the built-in tools.
    """
    command = shutil.which("packetgate") or str(Path(sys.executable).with_name("packetgate"))
    config = _config(settings)
    args = ["proxy", *(["--mcp-config", str(config)] if has_servers or config.exists() else []), "--client", client]
    env = {"PACKETGATE_ROOT": str(settings.root.absolute())}
    if settings.preferences_path is not None:
        env["PACKETGATE_CONFIG"] = str(settings.preferences_path.absolute())
    return {"command": command, "args": args, "env": env}


def install(client: str, place: SettingsPlace, settings: Settings) -> list[str]:
    """Replace the servers in a client's settings with the proxy, and move them into `mcp.json`.

    Unreadable entries stay. Return lines that say what was done.

    Raises:
        ConfigError: a file cannot be used, or `mcp.json` has another server of the same name. Nothing was changed.
    """
    theirs = SettingsFile.read(place.file)
    moving, staying, lines = _servers(client, theirs, place.key)
    ours = SettingsFile.read(_config(settings))
    known = entries_in(ours.document)
    conflicts = [name for name, entry in moving.items() if name in known and not is_same(known[name], entry)]
    if conflicts:
        raise ConfigError(
            f"{ours.path}: {conflicts[0]!r} differs from the client's server of that name: rename one of them"
        )
    new = {name: entry for name, entry in moving.items() if name not in known}
    ours_changed = ours.changed("mcpServers", {**_object(ours, "mcpServers"), **new}) if new else None
    entry = entry_for(client, settings, has_servers=ours_changed is not None)
    installed = theirs.changed(place.key, {**staying, ENTRY: entry})
    if theirs.data is not None and not is_ours(_object(theirs, place.key).get(ENTRY)):
        write(place.backup, theirs.data)
        lines.append(f"{place.backup}: the old settings; to uninstall, copy them back")
    try:
        if ours_changed is not None:
            write(ours.path, ours_changed)
            lines.append(f"{ours.path}: added {', '.join(new)}")
        write(place.file, installed)
    except ConfigError:
        if ours.data is None:
            ours.path.unlink(missing_ok=True)
        elif ours_changed is not None:
            write(ours.path, ours.data)
        raise
    return [*lines, f"{place.file}: added {ENTRY}; restart {client}"]


def _servers(client: str, file: SettingsFile, key: str) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    moving: dict[str, Any] = {}
    staying: dict[str, Any] = {}
    lines: list[str] = []
    for name, entry in _object(file, key).items():
        if name == ENTRY:
            continue
        try:
            read_server_entry(entry)
            moving[name] = json.loads(json.dumps(entry, default=str))
        except UnusableEntryError as error:
            staying[name] = entry
            lines.append(f"{file.path}: {name!r} was not moved: {error}")
    return moving, staying, lines


def _object(file: SettingsFile, key: str) -> dict[str, Any]:
    servers = file.document.get(key)
    if servers in (None, []):
        return {}
    if not isinstance(servers, dict):
        raise ConfigError(f"{file.path}: {key}: must be an object of servers by name: nothing was changed")
    return servers


def _config(settings: Settings) -> Path:
    return (settings.config_path or settings.root / "mcp.json").absolute()
