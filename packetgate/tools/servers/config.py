"""Read `mcp.json` in the forms that MCP clients write."""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from dotenv import dotenv_values

from packetgate.state.errors import ConfigError, ServerError
from packetgate.state.printing import printable
from packetgate.tools.catalogue.preferences import read_file
from packetgate.tools.servers.entries import UnusableEntryError, entries_of, looks_like_a_server, read_entry
from packetgate.tools.servers.variables import filled, variables_in
from packetgate.tools.text.documents import form_of

BUILT_IN_NAMES = ("ai", "embedding")
"""Names of the built-in servers, reserved beside them."""
MAX_REMARK = 300
MAX_DEPTH = 4
"""Nesting depth to which settings are searched for servers."""

_SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_HOLDERS = frozenset({"mcpservers", "servers", "contextservers"})
"""Keys under which clients keep servers, ignoring case, `_` and a prefix with a dot."""
_BESIDE_OTHERS = frozenset({"mcp", "extensions"})
"""Keys under which opencode, VS Code and goose keep servers among other things."""
_SWITCHED_OFF = ("disabledMcpServers", "disabledMcpjsonServers")
"""Lists of disabled servers in Claude Code."""


@dataclass(frozen=True)
class ServerConfig:
    """The configuration of one server."""

    name: str
    entry: dict[str, Any]
    """Fields by canonical name. Variables are filled in when the server starts."""
    source: str = "mcp.json"
    """The file that contains the entry."""
    folder: Path = Path()
    """The workspace folder."""
    tools: tuple[str, ...] = ()
    """Patterns of the tools to offer, by the server's names; empty: all."""
    hidden_tools: tuple[str, ...] = ()
    """Patterns of tools to hide."""

    def offers(self, tool: str) -> bool:
        """Whether a tool of the server is offered."""
        named = not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)
        return named and not any(fnmatchcase(tool, pattern) for pattern in self.hidden_tools)

    @property
    def trusted(self) -> bool:
        """Whether the server's annotations may lower a tool's risk."""
        return self.entry.get("trusted") is True

    @property
    def timeout_s(self) -> float | None:
        """Time-out of a call in seconds; None: the default."""
        milliseconds = self.entry.get("timeout")
        return float(milliseconds) / 1000 if isinstance(milliseconds, int | float) else None

    def filled(self) -> dict[str, Any]:
        """Return the entry with its variables filled in.

        Raises:
            ServerError: a variable is not set, or its `envFile` cannot be read.
        """
        entry = filled(self.entry, self.folder)
        for key in ("command", "cwd", "envFile"):
            if isinstance(entry.get(key), str) and entry[key].startswith("~"):
                entry[key] = str(Path(entry[key]).expanduser())
        if isinstance(entry.get("envFile"), str):
            entry["env"] = {**_read_variables(Path(entry["envFile"])), **entry.get("env", {})}
        return entry

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the entry, with their values."""
        return variables_in(self.entry)

    def concealed(self, text: str) -> str:
        """Return a text with `${NAME}` in place of the values of variables."""
        for name, value in self.variables().items():
            for spelled in {value, quote(value), quote(value, safe=""), repr(value)[1:-1]} - {""}:
                text = text.replace(spelled, f"${{{name}}}")
        return text


@dataclass(frozen=True)
class Remark:
    """A note on an entry that is not used unchanged."""

    name: str
    how: str
    kind: Literal["repaired", "left out", "disabled"]

    def __str__(self) -> str:
        what = "left out: " if self.kind == "left out" else ""
        return f"server {self.name!r}: {what}{self.how}"


@dataclass(frozen=True)
class McpConfig:
    """The configured servers."""

    servers: tuple[ServerConfig, ...] = ()
    builtin: Literal["all", "reads", "none"] = "all"
    """Which built-in tools are offered: all without configured servers, else those that read, if a server takes paths.
    `"builtin"` in the file overrides this: true for all, false for none.
    """
    source: str = "built in"
    remarks: tuple[Remark, ...] = ()

    @property
    def odd(self) -> list[str]:
        """One line for each entry that was repaired or left out."""
        return [f"{self.source}: {one}" for one in self.remarks if one.kind != "disabled"]


def load_config(path: Path | None, folder: Path = Path()) -> McpConfig:
    """Return the servers of `mcp.json`; without a path, the built-in servers. `folder` is the workspace.

    An unusable entry is left out with a remark.

    Raises:
        ConfigError: the file is missing, unreadable, or has no usable server.
    """
    if path is None:
        return McpConfig()
    mend = "--mcp-config or PACKETGATE_MCP_CONFIG, or leave both out to use the built-in tools"
    document = read_file(path, form_of(path), mend)
    if not isinstance(document, dict):
        raise ConfigError(f'{path}: must be an object with "mcpServers", not {type(document).__name__}')
    builtin = document.get("builtin")
    if not isinstance(builtin, bool | None):
        raise ConfigError(f'{path}: "builtin" must be true or false, not {builtin!r}')
    entries = entries_in(document, folder)
    if not entries and not builtin and (builtin is False or _places(document, folder) is None):
        raise ConfigError(
            f'{path}: no servers under "mcpServers": add one, or remove the file to use the built-in tools'
        )
    used = [(name, entry) for name, entry in entries if not _is_of_no_server(name, entry)]
    servers, remarks = _servers(path, used, BUILT_IN_NAMES if builtin else (), switched_off(document), folder)
    offered: Literal["all", "reads", "none"] = "all" if builtin or (builtin is None and not used) else "none"
    if builtin is None and used and not any(server.name in BUILT_IN_NAMES for server in servers):
        offered = "reads"
    if remarks and not builtin and all(one.kind == "left out" for one in remarks) and not servers:
        raise ConfigError(f"{path}: no entry can be used: {'; '.join(map(str, remarks))}"[: MAX_REMARK + 200])
    return McpConfig(servers, offered, str(path), remarks)


def entries_in(document: Mapping[str, Any], folder: Path = Path()) -> list[tuple[str, Any]]:
    """Return the entries of a file by name."""
    return [pair for place in _places(document, folder) or () for pair in entries_of(place)]


def _places(document: Mapping[str, Any], folder: Path) -> list[Any] | None:
    holders = [*_holders(document)]
    projects = document.get("projects")  # of Claude Code
    if isinstance(projects, dict) and isinstance(own := projects.get(str(folder.absolute())), dict):
        holders += _holders(own)
    if not holders and looks_like_a_server(document):
        holders = [{"server": document}]
    elif not holders and any(map(looks_like_a_server, document.values())):
        holders = [{name: value for name, value in document.items() if looks_like_a_server(value)}]
    return holders or [*_deeper(document)] or None


def _deeper(document: Mapping[str, Any], depth: int = 0) -> Iterator[Any]:
    for key, value in document.items():
        if isinstance(value, dict) and key != "projects" and depth < MAX_DEPTH:
            yield from _holders(value)
            yield from _deeper(value, depth + 1)


def _holders(document: Mapping[str, Any]) -> Iterator[Any]:
    for key, value in document.items():
        name = key.rpartition(".")[2].replace("_", "").casefold()
        if name in _BESIDE_OTHERS and isinstance(value, dict):
            inner = [*_holders(value)]
            yield from inner or [{key: one for key, one in value.items() if looks_like_a_server(one)}]
        elif name in _HOLDERS and isinstance(value, dict | list | None):
            yield value or {}


def _is_of_no_server(name: str, entry: Any) -> bool:
    return name.startswith(("$", "//", "_comment")) and not looks_like_a_server(entry)


def switched_off(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the servers that the file disables in lists."""
    mcp = document.get("mcp")
    lists = [document.get(key) for key in _SWITCHED_OFF] + [mcp.get("excluded") if isinstance(mcp, dict) else None]
    return frozenset(name for one in lists if isinstance(one, list) for name in one if isinstance(name, str))


def _servers(
    path: Path, entries: list[tuple[str, Any]], reserved: Collection[str], off: frozenset[str], folder: Path
) -> tuple[tuple[ServerConfig, ...], tuple[Remark, ...]]:
    servers: list[ServerConfig] = []
    remarks: list[Remark] = []
    names, seen = _names([name for name, _ in entries], reserved), dict[str, Any]()
    for written, raw in entries:
        if written in seen:
            if seen[written] != raw:
                remarks.append(Remark(written, "stands there twice: the second one is not used", "left out"))
            continue
        seen[written] = raw
        try:
            entry = read_entry(raw)
        except UnusableEntryError as error:
            remarks.append(Remark(written, _line(str(error)), "left out"))
            continue
        called = [] if names[written] == written else [f"it is called {names[written]} here"]
        if not entry.enabled or written in off:
            remarks.append(Remark(written, _line("; ".join(["switched off", *entry.notes])), "disabled"))
            continue
        if notes := [*called, *entry.notes]:
            remarks.append(Remark(written, _line("; ".join(notes)), "repaired"))
        filters = {"tools": entry.tools, "hidden_tools": entry.hidden_tools}
        servers.append(ServerConfig(names[written], entry.fields, str(path), folder, **filters))
    return tuple(servers), tuple(remarks)


def _names(written: list[str], reserved: Collection[str]) -> dict[str, str]:
    names = {name: name for name in written if _SERVER_NAME.fullmatch(name) and name not in reserved}
    taken = {*names, *reserved}
    for name in written:
        if name in names:
            continue
        letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        ascii_name = re.sub(r"[^A-Za-z0-9_-]+", "-", letters).strip("-_")[:48]
        ascii_name = ascii_name or f"server-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:6]}"
        places = (ascii_name if at == 1 else f"{ascii_name}-{at}" for at in range(1, len(written) + len(taken) + 2))
        names[name] = next(one for one in places if one not in taken)
        taken.add(names[name])
    return names


def _line(text: str) -> str:
    return printable(text)[:MAX_REMARK]


def _read_variables(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            return {name: value for name, value in dotenv_values(stream=file).items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        raise ServerError(f"{path}, the file of its variables (envFile), cannot be read: {error}") from error
