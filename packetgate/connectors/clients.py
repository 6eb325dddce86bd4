"""Clients and their tokens and rights, from the tables `[serve]` and `[proxy]` of `packetgate.toml`."""

import hmac
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from packetgate.state.context import NO_TOOLS, RoutingContext, intersect_patterns
from packetgate.state.errors import ConfigError
from packetgate.tools.catalogue.config_file import ConfigTable, NonEmpty, Pattern, config_error, read_config_file

LOCAL_CLIENT = "local"
"""The client without configuration: a process of this user on this machine."""
MIN_TOKEN_CHARS = 16

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ClientTable(ConfigTable):
    """One client: its token and its rights."""

    token: NonEmpty | None = None
    """The client's bearer token over HTTP; `${NAME}` is read from the environment."""
    servers: list[Pattern] | None = None
    """The servers that the client may use; None means all servers."""
    tools: list[Pattern] | None = None
    """Additional tools that the client may use, by canonical name."""
    allow_writes: bool | None = None
    """Whether write tools run after approval; None means the command's own option."""
    allow_commands: bool | None = None


class Clients(ConfigTable):
    """A table of `packetgate.toml` with clients: `[serve]` or `[proxy]`."""

    clients: dict[NonEmpty, ClientTable] = {}

    def client_settings(self, client: str, base: RoutingContext) -> RoutingContext:
        """Return the settings for a client's calls. Only these settings decide which tools it may list and call."""
        table = self.clients.get(client, ClientTable())
        switches = {"allow_write_tools": table.allow_writes, "allow_execute_tools": table.allow_commands}
        settings: dict[str, object] = {name: value for name, value in switches.items() if value is not None}
        if table.servers is not None or table.tools is not None:
            patterns = (*(f"{server}.*" for server in table.servers or ()), *(table.tools or ()))
            settings["allowed_tools"] = intersect_patterns(patterns or NO_TOOLS, base.allowed_tools)
        return base.model_copy(update=settings)

    def tokens(self, table_name: str, variable: str = "") -> dict[str, str]:
        """Return client names by token; `variable` is the token of `local`. Raise ConfigError for a weak token."""
        known: dict[str, str] = {}
        for name, table in self.clients.items():
            if table.token is None:
                continue
            where = f"{table_name}.clients.{name}.token"
            token = _checked_token(_expanded_token(table.token, where), where)
            if token in known:
                raise ConfigError(f"{where}: {known[token]!r} has the same token: give each client its own")
            known[token] = name
        if local := os.environ.get(variable, ""):
            known[_checked_token(local, variable)] = LOCAL_CLIENT
        return known


T = TypeVar("T", bound=ConfigTable)


def load_clients(table_name: Literal["serve", "proxy"], path: Path | None) -> Clients:
    """Return a table of clients; without a table, `local` may use all tools. Raise ConfigError if it is invalid."""
    accepted = f"`[{table_name}.clients.NAME]` with token, servers, tools, allow_writes, allow_commands"
    return load_table(Clients, path, table_name, accepted)


def load_table(kind: type[T], path: Path | None, name: str, accepted: str) -> T:
    """Return a table of `packetgate.toml`; `accepted` describes its settings. Raise ConfigError if it is invalid."""
    table = {} if path is None else read_config_file(path).get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: {name}: must be a table: write [{name}]")
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        known = f"unknown: `[{name}]` accepts {accepted}"
        raise config_error(path or Path("packetgate.toml"), error, known, name) from error


def client_for_token(token: str, tokens: Mapping[str, str]) -> str | None:
    """Return the client of a token, or None. All tokens are compared, so that timing reveals nothing."""
    encoded = token.encode(errors="replace")
    matching = [name for known, name in tokens.items() if hmac.compare_digest(known.encode(), encoded)]
    return matching[0] if matching else None


def _checked_token(token: str, where: str) -> str:
    if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{where}: a token needs at least {MIN_TOKEN_CHARS} printable characters and no spaces; "
            'create one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return token


def _expanded_token(token: str, where: str) -> str:
    variable = _VARIABLE.fullmatch(token)
    if variable is None:
        return token
    if not os.environ.get(variable[1]):
        raise ConfigError(f"{where}: the environment variable {variable[1]} is not set")
    return os.environ[variable[1]]
