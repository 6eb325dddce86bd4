"""Putting the proxy into a client's own settings, in place of the servers that stand there, and taking it out again."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from graph.settings import Settings
from state.errors import ConfigError
from tools.catalogue.preferences import read_file

ClientName = Literal["claude-desktop", "claude-code", "cursor", "windsurf", "vscode", "gemini-cli"]
NAMES: tuple[ClientName, ...] = get_args(ClientName)
ENTRY = "packetgate"
BACK_UP = ".before-packetgate"


@dataclass(frozen=True)
class Place:
    """Where a client keeps its servers."""

    file: Path
    key: str = "mcpServers"

    @property
    def back_up(self) -> Path:
        """The client's settings as they were."""
        return self.file.with_name(self.file.name + BACK_UP)


def place_of(client: str, home: Path | None = None, system: str = sys.platform) -> Place:
    """Return where a client keeps its servers.

    Raises:
        ConfigError: it is not known here.
    """
    home = home or Path.home()
    if system == "darwin":
        shared = home / "Library" / "Application Support"
    elif system == "win32":
        shared = Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        shared = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    places: Mapping[str, Place] = {
        "claude-desktop": Place(shared / "Claude" / "claude_desktop_config.json"),
        "claude-code": Place(home / ".claude.json"),
        "cursor": Place(home / ".cursor" / "mcp.json"),
        "windsurf": Place(home / ".codeium" / "windsurf" / "mcp_config.json"),
        "vscode": Place(shared / "Code" / "User" / "mcp.json", key="servers"),
        "gemini-cli": Place(home / ".gemini" / "settings.json"),
    }
    if client not in places:
        raise ConfigError(
            f"--install {client}: not known: the clients are {', '.join(places)}; for another, put what "
            f"`packetgate proxy --install {NAMES[0]} --print` shows into its settings"
        )
    return places[client]


def entry_for(client: str, settings: Settings) -> dict[str, Any]:
    """Return the entry by which a client starts the proxy, wherever the client itself was started."""
    config = (settings.config_path or settings.root / "mcp.json").absolute()
    preferences = settings.preferences_path
    command = shutil.which("packetgate") or str(Path(sys.executable).with_name("packetgate"))
    environment = {"PACKETGATE_ROOT": str(settings.root.absolute())}
    if preferences is not None:
        environment["PACKETGATE_CONFIG"] = str(preferences.absolute())
    return {
        "command": command,
        "args": ["proxy", "--mcp-config", str(config), "--client", client],
        "env": environment,
    }


def install(client: str, place: Place, settings: Settings) -> list[str]:
    """Have the proxy stand in a client's settings in place of its servers, which the proxy takes over.

    Returns what was done, in words.

    Raises:
        ConfigError: a file cannot be used, or a server of that name stands in `mcp.json` already, and is another.
    """
    said = _read(place.file) if place.file.exists() else {}
    servers = said.get(place.key, {})
    if not isinstance(servers, dict):
        raise ConfigError(f"{place.file}: {place.key}: it must be an object of servers by name")
    theirs = {name: entry for name, entry in servers.items() if name != ENTRY}
    config = (settings.config_path or settings.root / "mcp.json").absolute()
    done = _take_over(theirs, config) if theirs else []
    if place.file.exists() and not place.back_up.exists():
        _write(place.back_up, place.file.read_text(encoding="utf-8-sig"))
        done.append(f"{place.back_up}: the settings as they were")
    _write_json(place.file, {**said, place.key: {ENTRY: entry_for(client, settings)}})
    return [*done, f"{place.file}: {ENTRY} stands there now; start {client} anew"]


def uninstall(client: str, place: Place) -> list[str]:
    """Have a client's servers stand in its settings as they did before.

    Raises:
        ConfigError: the proxy does not stand there, or a file cannot be used.
    """
    said = _read(place.file) if place.file.exists() else {}
    servers = said.get(place.key)
    if not isinstance(servers, dict) or ENTRY not in servers:
        raise ConfigError(f"{place.file}: {ENTRY} does not stand there: nothing was changed")
    before = _read(place.back_up).get(place.key, {}) if place.back_up.exists() else {}
    added = {name: entry for name, entry in servers.items() if name != ENTRY}
    _write_json(place.file, {**said, place.key: {**before, **added}})
    place.back_up.unlink(missing_ok=True)
    return [f"{place.file}: its {len(before)} servers stand there again; start {client} anew"]


def _take_over(theirs: Mapping[str, Any], config: Path) -> list[str]:
    document = _read(config) if config.exists() else {}
    ours = document.get("mcpServers", {})
    others = [name for name, entry in theirs.items() if name in ours and ours[name] != entry]
    if others:
        raise ConfigError(
            f"{config}: {others[0]!r} stands there already, and is another server than the client's: rename one of them"
        )
    _write_json(config, {**document, "mcpServers": {**ours, **theirs}})
    return [f"{config}: took over {', '.join(theirs)}"]


def _read(path: Path) -> dict[str, Any]:
    document = read_file(path, "JSON", "where the client keeps its settings")
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be an object, not {type(document).__name__}")
    return document


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    _write(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all; it may hold secrets, so a new one is its owner's alone."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        beside = path.with_name(f"{path.name}.writing")
        beside.touch(mode=0o600)
        beside.write_text(text, encoding="utf-8")
        beside.chmod(mode)
        beside.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
