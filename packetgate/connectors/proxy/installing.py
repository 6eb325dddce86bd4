"""Install the proxy in a client's settings in place of its servers."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from packetgate.connectors.client_settings import ENTRY, SettingsFile, SettingsPlace, is_ours, write
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError
from packetgate.tools.servers.config import UnusableEntryError, entries_in, read_server_entry


def entry_for(client: str, settings: Settings, *, has_servers: bool = False) -> dict[str, Any]:
    """Return the settings entry with which a client starts the proxy from any folder."""
    command = shutil.which("packetgate") or str(Path(sys.executable).with_name("packetgate"))
    config = _config(settings)
    args = ["proxy", *(["--mcp-config", str(config)] if has_servers or config.exists() else []), "--client", client]
    env = {"PACKETGATE_ROOT": str(settings.root.absolute())}
    if settings.preferences_path is not None:
        env["PACKETGATE_CONFIG"] = str(settings.preferences_path.absolute())
    return {"command": command, "args": args, "env": env}


def install(client: str, place: SettingsPlace, settings: Settings) -> list[str]:
    """Replace the servers in a client's settings with the proxy, and move them into `mcp.json`.

    Unreadable entries stay. Everything is read and checked before anything is written. Return lines that say what was
    done.

    Raises:
        ConfigError: a file cannot be used, or `mcp.json` has another server of the same name.
    """
    theirs, ours = SettingsFile.read(place.file), SettingsFile.read(_config(settings))
    known, before = entries_in(ours.document), theirs.servers(place.key)
    new: dict[str, Any] = {}
    staying: dict[str, Any] = {}
    lines: list[str] = []
    for name, entry in before.items():
        try:
            read_server_entry(entry)
        except UnusableEntryError as error:
            staying[name] = entry
            lines.append(f"{theirs.path}: {name!r} was not moved: {error}")
            continue
        if name in known and name != ENTRY and known[name] != entry:
            raise ConfigError(f"{ours.path}: {name!r} differs from the client's server of that name: rename one")
        if name not in known and name != ENTRY:
            new[name] = json.loads(json.dumps(entry, default=str))
    ours_changed = ours.changed("mcpServers", {**ours.servers("mcpServers"), **new})
    entry = entry_for(client, settings, has_servers=bool(new))
    installed = theirs.changed(place.key, {**staying, ENTRY: entry})
    if theirs.text and not is_ours(before.get(ENTRY)):
        write(place.backup, theirs.text)
        lines.append(f"{place.backup}: the old settings; to uninstall, copy them back")
    if new:
        write(ours.path, ours_changed)
        lines.append(f"{ours.path}: added {', '.join(new)}")
    write(place.file, installed)
    return [*lines, f"{place.file}: added {ENTRY}; restart {client}"]


def _config(settings: Settings) -> Path:
    return (settings.config_path or settings.root / "mcp.json").absolute()
