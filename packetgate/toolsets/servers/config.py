"""Read an `mcp.json` file in the forms that MCP clients write."""

import json
import os
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError
from pydantic.alias_generators import to_camel

from packetgate.state.errors import ConfigError, ServerError
from packetgate.state.printing import printable
from packetgate.state.redaction import learn_entry_secrets, learn_secret
from packetgate.tools.catalogue.config_file import read_config_file, read_plain_file
from packetgate.tools.text.hosts import host_pattern
from packetgate.tools.text.values import leaves

BUILT_IN_NAMES = ("ai", "embedding")
"""Names of the built-in servers; other servers cannot have them while the built-in servers are offered."""
MAX_REMARK = 300
MIN_TIMEOUT_MS = 1000
"""Smaller time-outs are read as seconds: a server cannot start in so few milliseconds."""

_SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SERVER_KEYS = ("mcpServers", "servers")
"""Keys under which clients store servers. VS Code uses `servers`."""
_TARGET_KEYS = frozenset({"command", "url"})
_OTHER_NAMES = {"httpUrl": "url", "http_headers": "headers"}
"""Fields of Gemini CLI and of Codex."""
_NAMED_VARIABLES = frozenset({"bearer_token_env_var", "env_http_headers", "env_vars"})
"""Fields of Codex that name variables of its own environment."""
_TRANSPORTS = {"http": "http", "streamable-http": "http", "sse": "sse"}
_VARIABLE = re.compile(
    r"\$\{(?:(?P<folder>workspaceFolder|userHome)|(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::?-(?P<default>[^}]*))?)\}"
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TRANSPORT_HEADERS = frozenset(
    "accept accept-encoding connection content-encoding content-length content-type expect host keep-alive"
    " last-event-id te trailer transfer-encoding upgrade".split()
)
"""Headers that belong to one connection."""
_REPAIRS = {
    "timeout": (None, "a number of milliseconds", "the default applies"),
    "trusted": (None, "true or false", "the server is not trusted"),
    "sandbox": ("workspace", '"workspace", "read-only", "off" or a list of folders', "it is confined to the workspace"),
}
"""Fields whose wrong values do not make an entry unusable: the value used instead, the valid values, and the effect."""
_PLACEHOLDER = re.compile(
    r"/path/to/\S*|<[A-Za-z][^<>]*>|\bYOUR[_-]\w+|\byour[_-](?:api|key|token|secret|password|server|domain|user)\w*"
)
_EDITOR_VARIABLE = re.compile(r"\$\{((?:input|command|config|secret|prompt):[^}]*)\}")


class UnusableEntryError(ValueError):
    """An entry cannot be used; the message gives the reason."""


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [inner for inner in value if inner is not None]
    return {key: inner for key, inner in value.items() if inner is not None} if isinstance(value, dict) else value


_EntryText = Annotated[
    str, BeforeValidator(lambda value: json.dumps(value) if isinstance(value, int | float) else value)
]
_EntryTexts = Annotated[list[_EntryText], BeforeValidator(_without_nulls)]
_EntryTextsByName = Annotated[dict[str, _EntryText], BeforeValidator(_without_nulls)]


def _check_url(url: str) -> str:
    if not url.startswith(("http://", "https://", "${")):
        raise ValueError(f"must start with http:// or https://, not {url[:60]!a}")
    return url


def _check_forwarded(header: str) -> str:
    if not _HEADER_NAME.fullmatch(header) or header.lower().startswith("mcp-") or header.lower() in _TRANSPORT_HEADERS:
        raise ValueError(f"{header[:60]!a} cannot be forwarded")
    return header


def _milliseconds(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**12:
        raise ValueError("must be a number of milliseconds")
    return round(value) if value >= MIN_TIMEOUT_MS else max(1, round(1000 * value))


class _OAuthFields(BaseModel):
    """Packetgate's registration at the authorization server of a server. Files of other clients use `clientId`."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)

    client_id: _EntryText | None = None
    client_secret: _EntryText | None = None
    scopes: list[str] | None = None
    issuer: str | None = None
    """The only authorization server that receives the client's secret."""
    client_metadata_url: Annotated[str, Field(pattern="^https://[^/]+/.")] | None = None
    callback_port: Annotated[int, Field(gt=0, lt=65_536)] | None = None


class _EntryFields(BaseModel):
    """The fields of an entry that Packetgate reads. Other fields stay unchanged."""

    model_config = ConfigDict(extra="allow")

    command: str | None = None
    args: _EntryTexts = []
    env: _EntryTextsByName = {}
    cwd: _EntryText | None = None
    url: Annotated[str, AfterValidator(_check_url)] | None = None
    headers: _EntryTextsByName = {}
    forward_headers: list[Annotated[str, AfterValidator(_check_forwarded)]] = []
    """Headers of a proxy client's request that its calls pass on to the server."""
    transport: Literal["http", "sse"] | None = None
    oauth: _OAuthFields | None = None
    timeout: Annotated[int, BeforeValidator(_milliseconds)] | None = None
    trusted: StrictBool | None = None
    hosts: list[Annotated[str, AfterValidator(host_pattern)]] | None = None
    sandbox: Literal["workspace", "read-only", "off"] | list[str] | None = None
    """What a server process may change: its working folder and the folders that its entry names, these and other
    folders, nothing, or everything.
    """


@dataclass(frozen=True)
class ServerEntry:
    """An entry in canonical form."""

    fields: dict[str, Any]
    """Either `command`, `args`, `env` and `cwd`, or `url`, `headers` and `transport`; other fields are unchanged."""
    enabled: bool = True
    notes: tuple[str, ...] = ()
    """One phrase for each value that was not interpreted as written."""

    @property
    def server(self) -> dict[str, Any]:
        """The fields that identify the server."""
        return {key: self.fields.get(key) for key in ("command", "args", "env", "cwd", "url", "headers")}


def read_server_entry(raw: Any) -> ServerEntry:
    """Return an entry in canonical form.

    Raises:
        UnusableEntryError: the entry has neither a command nor a URL, or a value has the wrong type.
    """
    if not isinstance(raw, dict):
        raise UnusableEntryError(f"the entry must be an object, not {type(raw).__name__}")
    if match := next(filter(None, map(_EDITOR_VARIABLE.search, _texts_in(raw))), None):
        raise UnusableEntryError(
            f"only an editor can fill in ${{{match[1]}}}: write ${{NAME}}, and set the environment variable NAME"
        )
    if named := _NAMED_VARIABLES.intersection(raw):
        raise UnusableEntryError(f'"{min(named)}" only names variables: write ${{NAME}} in "env" or "headers"')
    raw = {_OTHER_NAMES.get(key, key): value for key, value in raw.items() if value is not None and value != ""}
    raw["transport"] = _TRANSPORTS.get(str(raw.pop("type", None) if "transport" not in raw else raw["transport"]))
    if "url" in raw and ("command" not in raw or raw["transport"]):
        unused = {"type", "command", "args", "env", "cwd", "sandbox"}
    elif "command" in raw:
        unused = {"type", "url", "headers", "forward_headers", "transport", "oauth"}
    else:
        raise UnusableEntryError('the entry needs a "command" that starts the server, or the server\'s "url"')
    fields, notes = _checked_fields({key: value for key, value in raw.items() if key not in unused})
    if fields.timeout is not None and raw["timeout"] < MIN_TIMEOUT_MS:
        notes.append(f"timeout {raw['timeout']} is read as {raw['timeout']:g} seconds")
    set_fields = fields.model_dump(exclude_defaults=True)
    used = {key: value for key, value in set_fields.items() if key in ("hosts", "sandbox") or value not in ([], {})}
    enabled = raw.get("enabled", True) is True and raw.get("disabled", False) is False
    return ServerEntry(used, enabled, tuple(notes))


def _checked_fields(raw: dict[str, Any]) -> tuple[_EntryFields, list[str]]:
    """Return the fields, and a note for each repaired field."""
    try:
        return _EntryFields.model_validate(raw), []
    except ValidationError as error:
        notes: dict[str, str] = {}
        for problem in error.errors(include_url=False):
            field = str(problem["loc"][0])
            if field not in _REPAIRS:
                path = ".".join(map(str, problem["loc"]))
                raise UnusableEntryError(f'"{path}": {problem["msg"].removeprefix("Value error, ")}') from error
            _, right, effect = _REPAIRS[field]
            notes[field] = f'"{field}" must be {right}, not {ascii(raw[field])[:60]}: {effect}'
        return _EntryFields.model_validate({**raw, **{name: _REPAIRS[name][0] for name in notes}}), [*notes.values()]


def _texts_in(entry: Mapping[str, Any]) -> list[str]:
    return [leaf.value for leaf in leaves(entry) if isinstance(leaf.value, str)]


def placeholders(entry: Mapping[str, Any]) -> list[str]:
    """Return the parts of an entry that documentation leaves for the user to fill in, such as `/path/to/folder`."""
    return [match[0] for text in _texts_in(entry) if (match := _PLACEHOLDER.search(text))]


@dataclass(frozen=True)
class ServerConfig:
    """The configuration of one server."""

    name: str
    entry: dict[str, Any]
    """Fields by canonical name; `resolved_entry` replaces the variables."""
    folder: Path = Path()
    """The workspace folder."""

    def offers(self, tool: str) -> bool:
        """Whether the entry's `includeTools` and `excludeTools` offer a tool of this name."""

        def fits(key: str, *, default: bool) -> bool:
            patterns = self.entry.get(key)
            texts = [text for text in patterns if isinstance(text, str)] if isinstance(patterns, list) else []
            return any(fnmatchcase(tool, pattern) for pattern in texts) if texts else default

        return fits("includeTools", default=True) and not fits("excludeTools", default=False)

    def resolved_entry(self) -> dict[str, Any]:
        """Return the entry with the values of its variables. Its secrets are redacted from now on.

        Raises:
            ServerError: a variable is not set and has no default, or the `envFile` cannot be read.
        """
        entry: dict[str, Any] = self._resolve_variables(self.entry)
        for key in ("command", "cwd", "envFile"):
            if isinstance(entry.get(key), str) and entry[key].startswith("~"):
                entry[key] = str(Path(entry[key]).expanduser())
        if isinstance(file := entry.get("envFile"), str):
            try:
                values = dotenv_values(stream=StringIO(read_plain_file(Path(file)).decode("utf-8-sig")))
            except (OSError, UnicodeDecodeError) as error:
                raise ServerError(f"the envFile {file} cannot be read: {error}") from error
            entry["env"] = {name: value for name, value in values.items() if value is not None} | entry.get("env", {})
        learn_entry_secrets(self.name, entry)
        return entry

    def _resolve_variables(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._resolve_variables(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._resolve_variables(inner) for inner in value]
        return _VARIABLE.sub(self._variable_value, value) if isinstance(value, str) else value

    def _variable_value(self, match: re.Match[str]) -> str:
        if match["folder"]:
            return str(Path.home() if match["folder"] == "userHome" else self.folder.absolute())
        name, default = match["name"], match["default"]
        value = os.environ.get(name)
        if value is None and default is None:
            raise ServerError(
                f"the environment variable {name} is not set: set it, or remove it from the server's entry"
            )
        learn_secret(name, value or "")
        return value or default or ""


@dataclass(frozen=True)
class EntryRemark:
    """A note on an entry that was repaired, left out or disabled."""

    name: str
    text: str
    kind: Literal["repaired", "left out", "disabled"]

    def __str__(self) -> str:
        prefix = "left out: " if self.kind == "left out" else ""
        return f"server {self.name!r}: {prefix}{printable(self.text)[:MAX_REMARK]}"


@dataclass(frozen=True)
class McpConfig:
    """The configured servers."""

    servers: tuple[ServerConfig, ...] = ()
    builtin: Literal["all", "reads", "none"] = "all"
    """Which built-in tools are offered. `reads`: the reads, if a tool of a server takes paths. By default `all` without
    configured servers, otherwise `reads`. In the file, `"builtin": true` sets `all`, and false sets `none`.
    """
    source: str = "built in"
    remarks: tuple[EntryRemark, ...] = ()

    @property
    def entry_problems(self) -> list[str]:
        """One line for each entry that was repaired or left out."""
        return [f"{self.source}: {remark}" for remark in self.remarks if remark.kind != "disabled"]


def load_config(path: Path | None, folder: Path = Path()) -> McpConfig:
    """Return the servers of an `mcp.json` file, or the built-in servers if `path` is None.

    An unusable entry is left out with a remark.

    Args:
        folder: the workspace, for `${workspaceFolder}`.

    Raises:
        ConfigError: the file is missing, unreadable, or has no usable server.
    """
    if path is None:
        return McpConfig()
    document = read_config_file(
        path, "JSON", "--mcp-config or PACKETGATE_MCP_CONFIG, or leave both out to use the built-in tools"
    )
    if not isinstance(document, dict):
        raise ConfigError(f'{path}: must be an object with "mcpServers", not {type(document).__name__}')
    builtin = document.get("builtin")
    if not isinstance(builtin, bool | None):
        raise ConfigError(f'{path}: "builtin" must be true or false, not {builtin!r}')
    entries = server_entries(document)
    if not entries and not builtin and (builtin is False or document.keys().isdisjoint(_SERVER_KEYS)):
        raise ConfigError(
            f'{path}: no servers under "mcpServers": add one, or remove the file to use the built-in tools'
        )
    servers, remarks = _read_servers(entries, BUILT_IN_NAMES if builtin else (), folder)
    if entries and not servers and not builtin and all(remark.kind == "left out" for remark in remarks):
        raise ConfigError(f"{path}: no entry can be used: {'; '.join(map(str, remarks))}"[: MAX_REMARK + 200])
    offered: Literal["all", "reads", "none"] = "none"
    if builtin or (builtin is None and not entries):
        offered = "all"
    elif builtin is None and not any(server.name in BUILT_IN_NAMES for server in servers):
        offered = "reads"
    return McpConfig(servers, offered, str(path), remarks)


def server_entries(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the server entries of a document by name.

    In a document without a key for servers, each object with a command or a URL is an entry.
    """
    if document.keys().isdisjoint(_SERVER_KEYS):
        entries = {name: entry for name, entry in document.items() if isinstance(entry, dict)}
        return {name: entry for name, entry in entries.items() if entry.keys() & _TARGET_KEYS}
    holders = [document[key] for key in reversed(_SERVER_KEYS) if isinstance(document.get(key), dict)]
    return {name: entry for holder in holders for name, entry in holder.items()}


def _read_servers(
    entries: Mapping[str, Any], reserved: Collection[str], folder: Path
) -> tuple[tuple[ServerConfig, ...], tuple[EntryRemark, ...]]:
    servers: list[ServerConfig] = []
    remarks: list[EntryRemark] = []
    names = _usable_names(entries, reserved)
    for written_name, raw in entries.items():
        try:
            entry = read_server_entry(raw)
        except UnusableEntryError as error:
            remarks.append(EntryRemark(written_name, str(error), "left out"))
            continue
        if not entry.enabled:
            remarks.append(EntryRemark(written_name, "switched off", "disabled"))
            continue
        name = names[written_name]
        if notes := [*([] if name == written_name else [f"renamed to {name}"]), *entry.notes]:
            remarks.append(EntryRemark(written_name, "; ".join(notes), "repaired"))
        servers.append(ServerConfig(name, entry.fields, folder))
    return tuple(servers), tuple(remarks)


def _usable_names(written_names: Collection[str], reserved: Collection[str]) -> dict[str, str]:
    names = {name: name for name in written_names if _SERVER_NAME.fullmatch(name) and name not in reserved}
    taken = {*names, *reserved}
    for name in written_names:
        if name in names:
            continue
        letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        usable = re.sub(r"[^A-Za-z0-9_-]+", "-", letters).strip("-_")[:48] or "server"
        candidates = (usable if number == 1 else f"{usable}-{number}" for number in count(1))
        names[name] = next(candidate for candidate in candidates if candidate not in taken)
        taken.add(names[name])
    return names
