"""Install the proxy in a client's settings in place of its servers, and uninstall it.

Everything is read, changed and checked before anything is written.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from packetgate.connectors.client_settings import ENTRY, Place, SettingsFile, is_ours, is_same, write
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError
from packetgate.tools.servers.config import entries_in
from packetgate.tools.servers.entries import UnusableEntryError, read_entry


def entry_for(client: str, settings: Settings, *, has_servers: bool = False) -> dict[str, Any]:
    """Return the settings entry with which a client starts the proxy from any folder.

    Without an `mcp.json` the proxy serves the built-in tools.
    """
    preferences = settings.preferences_path
    command = shutil.which("packetgate") or str(Path(sys.executable).with_name("packetgate"))
    config = _config(settings)
    args = ["proxy", *(["--mcp-config", str(config)] if has_servers or config.exists() else []), "--client", client]
    env = {"PACKETGATE_ROOT": str(settings.root.absolute())}
    if preferences is not None:
        env["PACKETGATE_CONFIG"] = str(preferences.absolute())
    return {"command": command, "args": args, "env": env}


def install(client: str, place: Place, settings: Settings) -> list[str]:
    """Replace the servers in a client's settings with the proxy, which takes them over.

    Unreadable entries stay. Return lines that say what was done.

    Raises:
        ConfigError: a file cannot be used, or a server of that name is in `mcp.json` already, and is another. Nothing
            was changed.
    """
    theirs = SettingsFile.read(place.file)
    taken, staying, lines = _servers(client, theirs, place.key)
    ours = SettingsFile.read(_config(settings))
    known = dict(entries_in(ours.document))
    others = [name for name, entry in taken.items() if name in known and not is_same(known[name], entry)]
    if others:
        raise ConfigError(
            f"{ours.path}: {others[0]!r} is there already, and is another server than the client's: rename one of them"
        )
    new = {name: entry for name, entry in taken.items() if name not in known}
    now = ours.changed("mcpServers", {**_object(ours, "mcpServers"), **new}) if new else None
    entry = entry_for(client, settings, has_servers=now is not None)
    installed = theirs.changed(place.key, {**staying, ENTRY: entry})
    saves = theirs.data is not None and not is_ours(_object(theirs, place.key).get(ENTRY))
    try:
        if theirs.data is not None and saves:
            write(place.backup, theirs.data)
            lines.append(f"{place.backup}: the settings as they were")
        if now is not None:
            write(ours.path, now)
            lines.append(f"{ours.path}: took over {', '.join(new)}")
        write(place.file, installed)
    except ConfigError:
        _put_back(ours)
        if saves:
            place.backup.unlink(missing_ok=True)
        raise
    return [*lines, f"{place.file}: {ENTRY} is there now; restart {client}"]


def uninstall(client: str, place: Place) -> list[str]:
    """Restore a client's settings from before the installation; later changes are kept.

    Raises:
        ConfigError: the proxy is not there, or a file cannot be used. Nothing was changed.
    """
    current = SettingsFile.read(place.file)
    servers = _object(current, place.key)
    if ENTRY not in servers:
        raise ConfigError(f"{place.file}: {ENTRY} is not there: nothing was changed")
    if not place.backup.exists():
        left = {name: entry for name, entry in servers.items() if name != ENTRY}
        if left or len(current.document) > 1:
            write(place.file, current.changed(place.key, left))
        else:
            place.file.unlink()  # it was made for the proxy
        return [f"{place.file}: {ENTRY} was taken out; restart {client}"]
    before = SettingsFile.of(place.file, place.backup.read_bytes())
    was = _object(before, place.key)
    _, staying, _ = _servers(client, before, place.key)
    as_installed = {**before.document, place.key: {**staying, ENTRY: servers[ENTRY]}}
    if current.document == as_installed and before.data is not None:
        write(place.file, before.data)
    else:
        added = {name: entry for name, entry in servers.items() if name != ENTRY}
        write(place.file, current.changed(place.key, {**was, **added}))
    place.backup.unlink(missing_ok=True)
    return [f"{place.file}: its {len(was)} servers are there again; restart {client}"]


def _servers(client: str, file: SettingsFile, key: str) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    taken: dict[str, Any] = {}
    staying: dict[str, Any] = {}
    lines: list[str] = []
    for name, entry in _object(file, key).items():
        if name == ENTRY:
            continue
        try:
            read_entry(entry)
            taken[name] = json.loads(json.dumps(entry, default=str))
        except UnusableEntryError as error:
            staying[name] = entry
            lines.append(f"{file.path}: {name!r} stays {client}'s own: {error}")
    return taken, staying, lines


def _object(file: SettingsFile, key: str) -> dict[str, Any]:
    servers = file.document.get(key)
    if servers in (None, []):
        return {}
    if not isinstance(servers, dict):
        raise ConfigError(f"{file.path}: {key}: it must be an object of servers by name: nothing was changed")
    return servers


def _config(settings: Settings) -> Path:
    return (settings.config_path or settings.root / "mcp.json").absolute()


def _put_back(file: SettingsFile) -> None:
    if file.data is None:
        file.path.unlink(missing_ok=True)
    elif file.path.read_bytes() != file.data:
        write(file.path, file.data)
