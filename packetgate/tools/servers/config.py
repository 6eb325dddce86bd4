"""Read `mcp.json`."""

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from dotenv import dotenv_values

from packetgate.state.errors import ConfigError, ServerError
from packetgate.state.printing import printable
from packetgate.tools.catalogue.config_file import read_file
from packetgate.tools.servers.entries import (
    UnusableEntryError,
    read_server_entry,
    variables_in,
    with_variables,
)

BUILT_IN_NAMES = ("ai", "embedding")
"""Names of the built-in servers, reserved beside them."""
MAX_REMARK = 300

_SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_KEYS = ("mcpServers", "servers")
"""Keys under which clients keep servers; VS Code uses the second one."""
_STARTS = frozenset({"command", "url"})


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
        entry: dict[str, Any] = with_variables(self.entry, self.folder)
        for key in ("command", "cwd", "envFile"):
            if isinstance(entry.get(key), str) and entry[key].startswith("~"):
                entry[key] = str(Path(entry[key]).expanduser())
        if isinstance(entry.get("envFile"), str):
            entry["env"] = {**_read_variables(Path(entry["envFile"])), **entry.get("env", {})}
        return entry

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the entry, with their values."""
        return variables_in(self.entry)

    def conceal(self, text: str) -> str:
        """Return a text with `${NAME}` in place of the values of variables."""
        for name, value in self.variables().items():
            for spelling in {value, quote(value), quote(value, safe=""), repr(value)[1:-1]} - {""}:
                text = text.replace(spelling, f"${{{name}}}")
        return text


@dataclass(frozen=True)
class Remark:
    """A note on an entry that was repaired, left out or disabled."""

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
        return [f"{self.source}: {remark}" for remark in self.remarks if remark.kind != "disabled"]


def load_config(path: Path | None, folder: Path = Path()) -> McpConfig:
    """Return the servers of `mcp.json`; without a path, the built-in servers. `folder` is the workspace.

    An unusable entry is left out with a remark.

    Raises:
        ConfigError: the file is missing, unreadable, or has no usable server.
    """
    if path is None:
        return McpConfig()
    document = read_file(
        path, "JSON", "--mcp-config or PACKETGATE_MCP_CONFIG, or leave both out to use the built-in tools"
    )
    if not isinstance(document, dict):
        raise ConfigError(f'{path}: must be an object with "mcpServers", not {type(document).__name__}')
    builtin = document.get("builtin")
    if not isinstance(builtin, bool | None):
        raise ConfigError(f'{path}: "builtin" must be true or false, not {builtin!r}')
    entries = entries_in(document)
    if not entries and not builtin and (builtin is False or document.keys().isdisjoint(_KEYS)):
        raise ConfigError(
            f'{path}: no servers under "mcpServers": add one, or remove the file to use the built-in tools'
        )
    servers, remarks = _servers(path, entries, BUILT_IN_NAMES if builtin else (), folder)
    if entries and not servers and not builtin and all(remark.kind == "left out" for remark in remarks):
        raise ConfigError(f"{path}: no entry can be used: {'; '.join(map(str, remarks))}"[: MAX_REMARK + 200])
    offered: Literal["all", "reads", "none"] = "none"
    if builtin or (builtin is None and not entries):
        offered = "all"
    elif builtin is None and not any(server.name in BUILT_IN_NAMES for server in servers):
        offered = "reads"
    return McpConfig(servers, offered, str(path), remarks)


def entries_in(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries by name. Without a key of servers, the objects that name a command or URL are entries."""
    holders = [document[key] for key in reversed(_KEYS) if isinstance(document.get(key), dict)]
    if document.keys().isdisjoint(_KEYS):
        holders = [{name: one for name, one in document.items() if isinstance(one, dict) and one.keys() & _STARTS}]
    return {name: entry for holder in holders for name, entry in holder.items()}


def _servers(
    path: Path, entries: Mapping[str, Any], reserved: Collection[str], folder: Path
) -> tuple[tuple[ServerConfig, ...], tuple[Remark, ...]]:
    servers: list[ServerConfig] = []
    remarks: list[Remark] = []
    names = _usable_names(entries, reserved)
    for written, raw in entries.items():
        try:
            entry = read_server_entry(raw)
        except UnusableEntryError as error:
            remarks.append(Remark(written, _line(str(error)), "left out"))
            continue
        if not entry.enabled:
            remarks.append(Remark(written, "switched off", "disabled"))
            continue
        name = names[written]
        if notes := [*([] if name == written else [f"renamed to {name}"]), *entry.notes]:
            remarks.append(Remark(written, _line("; ".join(notes)), "repaired"))
        servers.append(ServerConfig(name, entry.fields, str(path), folder, entry.tools, entry.hidden_tools))
    return tuple(servers), tuple(remarks)


def _usable_names(written: Collection[str], reserved: Collection[str]) -> dict[str, str]:
    names = {name: name for name in written if _SERVER_NAME.fullmatch(name) and name not in reserved}
    taken = {*names, *reserved}
    for name in written:
        if name in names:
            continue
        letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        usable = re.sub(r"[^A-Za-z0-9_-]+", "-", letters).strip("-_")[:48] or "server"
        candidates = chain([usable], (f"{usable}-{number}" for number in count(2)))
        names[name] = next(candidate for candidate in candidates if candidate not in taken)
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
