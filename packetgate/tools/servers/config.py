"""Read `mcp.json`, in the forms that MCP clients write it."""

import json
import os
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from dotenv import dotenv_values
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from packetgate.state.errors import ConfigError, ServerError
from packetgate.state.printing import printable
from packetgate.tools.catalogue.config_file import read_file

BUILT_IN_NAMES = ("ai", "embedding")
"""Names of the built-in servers, reserved beside them."""
MAX_REMARK = 300
MIN_TIMEOUT_MS = 1000
"""A smaller time-out is in seconds: no server starts in so few milliseconds."""

_SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_KEYS = ("mcpServers", "servers")
"""Keys under which clients keep servers; VS Code uses the second one."""
_STARTS = frozenset({"command", "url"})
_TRANSPORTS = {"http": "http", "streamable-http": "http", "sse": "sse"}
_VARIABLE = re.compile(
    r"\$\{(?:(?P<folder>workspaceFolder|userHome)|(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::?-(?P<default>[^}]*))?)\}"
)
_EDITOR_VARIABLE = re.compile(r"\$\{((?:input|command|config|secret|prompt):[^}]*)\}")


class UnusableEntryError(ValueError):
    """An entry cannot be used; the message says why."""


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [inner for inner in value if inner is not None]
    return {key: inner for key, inner in value.items() if inner is not None} if isinstance(value, dict) else value


_Text = Annotated[str, BeforeValidator(lambda value: json.dumps(value) if isinstance(value, int | float) else value)]
_Texts = Annotated[list[_Text], BeforeValidator(_without_nulls)]
_TextsByName = Annotated[dict[str, _Text], BeforeValidator(_without_nulls)]


class _Fields(BaseModel):
    """The fields of an entry that are read; all others are kept unchanged."""

    model_config = ConfigDict(extra="allow")

    command: str | None = None
    args: _Texts = []
    env: _TextsByName = {}
    cwd: _Text | None = None
    url: Annotated[str, Field(pattern=r"^(https?://|\$\{)")] | None = None
    headers: _TextsByName = {}
    transport: Literal["http", "sse"] | None = None
    timeout: int | None = None
    trusted: bool | None = None


@dataclass(frozen=True)
class ServerEntry:
    """An entry in canonical form."""

    fields: dict[str, Any]
    """`command`, `args`, `env`, `cwd`, or `url`, `headers`, `transport`; other fields unchanged."""
    enabled: bool = True
    tools: tuple[str, ...] = ()
    """Patterns of the tools to offer; empty: all."""
    hidden_tools: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """One phrase for each value that was interpreted."""

    @property
    def server(self) -> dict[str, Any]:
        """The fields that identify the server."""
        return {key: self.fields.get(key) for key in ("command", "args", "env", "cwd", "url", "headers")}


def read_server_entry(raw: Any) -> ServerEntry:
    """Return an entry in canonical form.

    Raises:
        UnusableEntryError: the entry has no server, or a value of the wrong type.
    """
    if not isinstance(raw, dict):
        raise UnusableEntryError(f"must be an object, not {type(raw).__name__}")
    if match := next(filter(None, map(_EDITOR_VARIABLE.search, _texts(raw))), None):
        raise UnusableEntryError(f"an editor asks for ${{{match[1]}}}: write ${{NAME}} and set that variable")
    notes: list[str] = []
    raw = {key: value for key, value in raw.items() if value is not None and value != ""}
    raw["transport"] = _TRANSPORTS.get(str(raw.pop("type", None) if "transport" not in raw else raw["transport"]))
    raw["timeout"] = _timeout_ms(raw.get("timeout"), notes)
    if not isinstance(raw.get("trusted"), bool | None):
        notes.append(f'"trusted" must be true or false, not {ascii(raw.pop("trusted"))[:60]}: it is not trusted')
    if "url" in raw and ("command" not in raw or raw["transport"]):
        unused = {"type", "command", "args", "env", "cwd"}
    elif "command" in raw:
        unused = {"type", "url", "headers", "transport"}
    else:
        raise UnusableEntryError('needs either a "command" to start or a "url" to reach')
    try:
        fields = _Fields.model_validate({key: value for key, value in raw.items() if key not in unused})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UnusableEntryError(f'"{".".join(map(str, first["loc"]))}": {first["msg"]}') from error
    kept = {key: value for key, value in fields.model_dump(exclude_defaults=True).items() if value not in ([], {})}
    enabled = raw.get("enabled", True) is True and raw.get("disabled", False) is False
    return ServerEntry(kept, enabled, _names(raw.get("includeTools")), _names(raw.get("excludeTools")), tuple(notes))


def _timeout_ms(value: Any, notes: list[str]) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**12:
        notes.append(f"timeout {ascii(value)[:60]} is not a number of milliseconds: the default applies")
        return None
    if value >= MIN_TIMEOUT_MS:
        return round(value)
    notes.append(f"timeout {value} is read as {value:g} seconds")
    return max(1, round(1000 * value))


def _names(names: Any) -> tuple[str, ...]:
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


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
            ServerError: a variable is not set and has no default, or the `envFile` cannot be read.
        """
        entry: dict[str, Any] = self._with_variables(self.entry)
        for key in ("command", "cwd", "envFile"):
            if isinstance(entry.get(key), str) and entry[key].startswith("~"):
                entry[key] = str(Path(entry[key]).expanduser())
        if isinstance(entry.get("envFile"), str):
            entry["env"] = {**_read_variables(Path(entry["envFile"])), **entry.get("env", {})}
        return entry

    def _with_variables(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._with_variables(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._with_variables(inner) for inner in value]
        return _VARIABLE.sub(self._value_of, value) if isinstance(value, str) else value

    def _value_of(self, match: re.Match[str]) -> str:
        if match["folder"]:
            return str(Path.home() if match["folder"] == "userHome" else self.folder.absolute())
        name, default = match["name"], match["default"]
        value = os.environ.get(name)
        if value is None and default is None:
            raise ServerError(f"the environment variable {name} is not set: set it, or take it out")
        return value or default or ""

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the entry with their values; empty if not set."""
        names = [match["name"] for text in _texts(self.entry) for match in _VARIABLE.finditer(text) if match["name"]]
        return {name: os.environ.get(name, "") for name in names}

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
        return f"server {self.name!r}: {what}{printable(self.how)[:MAX_REMARK]}"


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
            remarks.append(Remark(written, str(error), "left out"))
            continue
        if not entry.enabled:
            remarks.append(Remark(written, "switched off", "disabled"))
            continue
        name = names[written]
        if notes := [*([] if name == written else [f"renamed to {name}"]), *entry.notes]:
            remarks.append(Remark(written, "; ".join(notes), "repaired"))
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


def _read_variables(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            return {name: value for name, value in dotenv_values(stream=file).items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        raise ServerError(f"{path}, the file of its variables (envFile), cannot be read: {error}") from error
