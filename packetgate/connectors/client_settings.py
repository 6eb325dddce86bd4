"""Settings files of other MCP clients: find them, recognise our entry, and change one key without touching the rest."""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from packetgate.state.errors import ConfigError
from packetgate.tools.servers.entries import UnusableEntryError, read_entry
from packetgate.tools.text import jsonc
from packetgate.tools.text.documents import READERS, Form, form_of

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
    """The file and key under which a client keeps its servers."""

    file: Path
    key: str = "mcpServers"

    @property
    def back_up(self) -> Path:
        """The backup of the client's settings."""
        return self.file.with_name(self.file.name + BACK_UP)


def place_of(client: str, home: Path | None = None, system: str = sys.platform) -> Place:
    """Return where a client keeps its servers. Raise ConfigError for an unknown client."""
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
    return next((path for path in paths if path.exists()), paths[0])


def is_ours(entry: Any) -> bool:
    """Whether `packetgate proxy --install` wrote an entry."""
    try:
        return {"proxy", "--client"} <= {*read_entry(entry).fields.get("args", ())}
    except UnusableEntryError:
        return False


def is_same(one: Any, other: Any) -> bool:
    """Whether two entries describe the same server, whatever their form."""
    try:
        return one == other or read_entry(one).server == read_entry(other).server
    except UnusableEntryError:
        return False


MAX_FILE = 64_000_000
"""Largest settings file in bytes; Claude Code keeps its history in the same file."""
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class SettingsFile:
    """A client's settings file, as read from disk."""

    path: Path
    data: bytes | None
    """None if the file does not exist."""
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> "SettingsFile":
        """Read a JSON, TOML or YAML file by its suffix; a missing or empty file is an empty document.

        Raises:
            ConfigError: it cannot be read.
        """
        try:
            data = path.read_bytes() if path.exists() else None
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
        if data is not None and len(data) > MAX_FILE:
            raise ConfigError(f"{path}: larger than {MAX_FILE // 10**6} MB: nothing was changed")
        return cls.of(path, data)

    @classmethod
    def of(cls, path: Path, data: bytes | None) -> "SettingsFile":
        """Parse the content of a file. Raise ConfigError if it cannot be parsed."""
        return cls(path, data, _document(path, data or b""))

    def changed(self, key: str, value: Mapping[str, Any]) -> bytes:
        """Return the file's content with a new object under a key.

        Raises:
            ConfigError: it could not be changed without changing something else.
        """
        data = self.data or b""
        text = _text(self.path, data) if data.strip(_MARK).strip() else _EMPTY[form_of(self.path)]
        try:
            written = (_MARK if data.startswith(_MARK) else b"") + _CHANGES[form_of(self.path)](
                text, key, value
            ).encode()
            same = _document(self.path, written) == {**self.document, key: value}
        except (ValueError, TypeError, ConfigError) as error:
            raise ConfigError(f"{self.path}: cannot be changed: {error}: nothing was changed") from error
        if not same:
            raise ConfigError(f"{self.path}: {key} cannot be changed alone: nothing was changed; change it by hand")
        return written


def write(path: Path, data: bytes) -> None:
    """Write a file atomically, following links; a new file is readable by its owner only, as it may hold secrets.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        beside = path.with_name(f"{path.name}.writing")
        beside.touch(mode=0o600)
        beside.write_bytes(data)
        beside.chmod(mode)
        beside.replace(path)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path}: cannot be written: {error}") from error


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text at byte {error.start}: save it as UTF-8") from error


def _document(path: Path, data: bytes) -> dict[str, Any]:
    text, form = _text(path, data), form_of(path)
    if not text.strip():
        return {}
    try:
        document = READERS[form](text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not {form} that can be read: {' '.join(str(error).split())[:200]}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be an object, not {type(document).__name__}")
    return document


def _changed_yaml(text: str, key: str, value: Mapping[str, Any]) -> str:
    from ruamel.yaml import YAML

    yaml = YAML(pure=True)
    yaml.preserve_quotes, yaml.width = True, 10_000
    document = yaml.load(text) or {}
    kept = document.get(key)
    document[key] = _merged(kept, value)
    yaml.dump(document, out := io.StringIO())
    return out.getvalue()


def _changed_toml(text: str, key: str, value: Mapping[str, Any]) -> str:
    import tomlkit

    tables = re.split(r"(?m)^(?=[ \t]*\[)", text)
    own = re.compile(rf"""[ \t]*\[\[?\s*["']?{re.escape(key)}["']?\s*[\].]""")
    kept = "".join(_after_last_value(table) if own.match(table) else table for table in tables)
    document = tomlkit.parse(kept)
    document.pop(key, None)
    begun = tomlkit.dumps(document)
    return begun + ("\n" if begun.strip() and not begun.endswith("\n\n") else "") + tomlkit.dumps({key: value})


def _after_last_value(table: str) -> str:
    """Return the comments and blank lines at the end of a table's text: they belong to the next table."""
    lines = table.splitlines(keepends=True)
    values = [at for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
    return "".join(lines[values[-1] + 1 :])


def _merged(kept: Any, value: Mapping[str, Any]) -> Any:
    if not isinstance(kept, dict):
        return dict(value)
    for name in [name for name in kept if name not in value]:
        del kept[name]
    for name, one in value.items():
        if name not in kept or kept[name] != one:
            kept[name] = one
    return kept


_CHANGES: Mapping[Form, Callable[[str, str, Mapping[str, Any]], str]] = {
    "JSON": jsonc.with_value,
    "TOML": _changed_toml,
    "YAML": _changed_yaml,
}
_EMPTY: Mapping[Form, str] = {"JSON": "{\n}\n", "TOML": "", "YAML": ""}
