"""Where clients keep their MCP servers, and whose entry is whose."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from packetgate.state.errors import ConfigError
from packetgate.tools.servers.entries import UnusableEntryError, read_entry

ClientName = Literal[
    "claude-desktop",
    "claude-code",
    "cursor",
    "windsurf",
    "vscode",
    "gemini-cli",
    "codex",
    "opencode",
    "goose",
    "zed",
    "cline",
]
NAMES: tuple[ClientName, ...] = get_args(ClientName)
ENTRY = "packetgate"
"""The name of the proxy's entry in a client's settings."""
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
    roaming = Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    plain = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    shared = {"darwin": home / "Library" / "Application Support", "win32": roaming}.get(system, plain)
    code = shared / "Code" / "User"
    opencode = plain / "opencode"
    goose = roaming / "Block" / "goose" / "config" if system == "win32" else plain / "goose"
    zed = roaming / "Zed" if system == "win32" else plain / "zed"
    cline = Path("settings", "cline_mcp_settings.json")
    in_editor = code / "globalStorage" / "saoudrizwan.claude-dev" / cline
    places: Mapping[str, Place] = {
        "claude-desktop": Place(shared / "Claude" / "claude_desktop_config.json"),
        "claude-code": Place(home / ".claude.json"),
        "cursor": Place(home / ".cursor" / "mcp.json"),
        "windsurf": Place(home / ".codeium" / "windsurf" / "mcp_config.json"),
        "vscode": Place(code / "mcp.json", key="servers"),
        "gemini-cli": Place(home / ".gemini" / "settings.json"),
        "codex": Place(Path(os.environ.get("CODEX_HOME") or home / ".codex") / "config.toml", key="mcp_servers"),
        "opencode": Place(_first_of(opencode / "opencode.json", opencode / "opencode.jsonc"), key="mcp"),
        "goose": Place(goose / "config.yaml", key="extensions"),
        "zed": Place(zed / "settings.json", key="context_servers"),
        "cline": Place(_first_of(in_editor, home / ".cline" / "data" / cline)),
    }
    if client not in places:
        raise ConfigError(
            f"--install {client}: not known: the clients are {', '.join(places)}; for another, put what "
            f"`packetgate proxy --install {NAMES[0]} --print` shows into its settings"
        )
    return places[client]


def _first_of(*paths: Path) -> Path:
    """Return the first file that is there; the first of all where none is."""
    return next((path for path in paths if path.exists()), paths[0])


def is_ours(entry: Any) -> bool:
    """Whether an entry was put there by an installation."""
    try:
        return {"proxy", "--client"} <= {*read_entry(entry).fields.get("args", ())}
    except UnusableEntryError:
        return False


def is_same(one: Any, other: Any) -> bool:
    """Whether two entries are of one server, in whichever form."""
    try:
        return one == other or read_entry(one).server == read_entry(other).server
    except UnusableEntryError:
        return False
