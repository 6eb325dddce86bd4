"""MCP servers in the settings of other clients on this machine, for an `mcp.json` to take over."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from packetgate.connectors.client_files import SettingsFile
from packetgate.connectors.client_places import ENTRY, NAMES, is_ours, is_same, place_of
from packetgate.state.errors import ConfigError
from packetgate.state.redaction import is_secret_name
from packetgate.tools.servers.config import entries_in, switched_off
from packetgate.tools.servers.entries import UnusableEntryError, read_entry

KEY = "mcpServers"


@dataclass(frozen=True)
class ClientServers:
    """What one client has."""

    client: str
    file: Path
    entries: Mapping[str, Any]
    """The servers that are switched on and can be used here, as they are written there."""
    notes: tuple[str, ...] = ()
    """Why others are left out."""


def find_servers(folder: Path) -> list[ClientServers]:
    """Return the servers of every client that has settings here; `folder` is the workspace. Blocking."""
    found = [_of_client(client, place_of(client).file, folder) for client in NAMES]
    return [one for one in found if one.entries or one.notes]


def _of_client(client: str, file: Path, folder: Path) -> ClientServers:
    try:
        document = SettingsFile.read(file).document
    except ConfigError as error:
        return ClientServers(client, file, {}, (str(error),))
    off, entries, notes = switched_off(document), dict[str, Any](), list[str]()
    for name, entry in entries_in(document, folder):
        try:
            if name not in off and read_entry(entry).enabled and name != ENTRY and not is_ours(entry):
                entries[name] = json.loads(json.dumps(entry, default=str))
        except UnusableEntryError as error:
            notes.append(f"{file}: {name!r} is left out: {error}")
    return ClientServers(client, file, entries, tuple(notes))


def new_entries(found: Iterable[ClientServers], ours: SettingsFile, folder: Path) -> dict[str, Any]:
    """Return the entries that a file does not have yet, each server once; a name that another has gets its client's."""
    known: dict[str, Any] = dict(entries_in(ours.document, folder))
    new: dict[str, Any] = {}
    for one in found:
        for name, entry in one.entries.items():
            if any(is_same(entry, other) for other in known.values()):
                continue
            others = (f"{name}-{one.client}{at or ''}" for at in count())
            free = next(other for other in chain([name], others) if other not in known)
            known[free] = new[free] = entry
    return new


def with_entries(ours: SettingsFile, new: Mapping[str, Any]) -> bytes:
    """Return a file's content with more servers; a new one keeps the built-in tools that there were without it.

    Raises:
        ConfigError: it cannot be changed without changing something else.
    """
    if ours.data is None:
        return f"{json.dumps({'builtin': True, KEY: new}, indent=2, ensure_ascii=False)}\n".encode()
    has = ours.document.get(KEY) or {}
    if not isinstance(has, dict):
        raise ConfigError(f"{ours.path}: {KEY}: it must be an object of servers by name: nothing was changed")
    return ours.changed(KEY, {**has, **new})


def holding_secrets(entries: Mapping[str, Any]) -> list[str]:
    """Return the names of the entries in which a key is written out."""
    return [name for name, entry in entries.items() if _has_secret(entry)]


def _has_secret(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_secret, value))
    pairs = value.items() if isinstance(value, dict) else ()
    return any(
        (isinstance(one, str) and is_secret_name(str(key)) and one != "" and "${" not in one) or _has_secret(one)
        for key, one in pairs
    )
