"""The `[proxy]` table of `packetgate.toml`: which clients there are, what each may use, and contexts by name."""

import os
import re
from pathlib import Path

from pydantic import Field, ValidationError

from state.context import NOTHING, RoutingContext, in_both
from state.errors import ConfigError
from tools.catalogue.preferences import NonEmpty, Pattern, Table, misunderstood, read_file

SETTINGS = (
    "not known: `[proxy]` may hold `[proxy.clients.NAME]` with token, servers, tools, allow_writes, allow_commands, "
    "and `[proxy.contexts]` with what each name stands for"
)
LOCAL = "local"
"""The client that nobody configured: whoever runs on this machine as this user."""
SHORTEST_TOKEN = 16
CONTEXT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ClientTable(Table):
    """One client: how it is known, and what it may do."""

    token: NonEmpty | None = None
    """By which it is known over HTTP; `${NAME}` is read from the environment."""
    servers: list[Pattern] | None = None
    """The only servers that it hears of; None: all."""
    tools: list[Pattern] | None = None
    """The only tools that it hears of, by canonical name, beside those of `servers`."""
    allow_writes: bool | None = None
    """Whether tools that change things run, after approval; None: as the proxy was started."""
    allow_commands: bool | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        """The tools that it hears of; none: all."""
        return (*(f"{server}.*" for server in self.servers or ()), *(self.tools or ()))


class ProxyConfig(Table):
    """The whole table."""

    clients: dict[NonEmpty, ClientTable] = {}
    contexts: dict[NonEmpty, NonEmpty] = Field(default={})
    """By the name in `/context/NAME/mcp`: what its list is chosen for."""

    def settings_of(self, client: str, started: RoutingContext) -> RoutingContext:
        """Return the settings that a client's calls run under: the one place that says what it may list and call."""
        table = self.clients.get(client, ClientTable())
        narrowed = table.servers is not None or table.tools is not None
        given = {
            "allow_write_tools": table.allow_writes,
            "allow_execute_tools": table.allow_commands,
            "allowed_tools": in_both(table.patterns or NOTHING, started.allowed_tools) if narrowed else None,
        }
        said = {name: value for name, value in given.items() if value is not None}
        return started.model_copy(update=said)

    def query_of(self, context: str) -> str:
        """Return what a context's name in a URL stands for: what is configured, or its own words."""
        return self.contexts.get(context) or context.replace("-", " ").replace("_", " ")

    def tokens(self) -> dict[str, str]:
        """Return the clients by their tokens.

        Raises:
            ConfigError: a token's variable is not set, or it is too short, or two clients have the same.
        """
        known: dict[str, str] = {}
        for name, table in self.clients.items():
            if table.token is None:
                continue
            token = _filled(table.token, f"proxy.clients.{name}.token")
            if token in known:
                raise ConfigError(f"proxy.clients.{name}.token is that of {known[token]!r} too: give each its own")
            known[token] = name
        return known


def load_proxy_config(path: Path | None) -> ProxyConfig:
    """Read the table; without a file, or without the table in it, there is one client, which may use everything.

    Raises:
        ConfigError: the file cannot be read, or the table says what is not understood.
    """
    table = {} if path is None else read_file(path).get("proxy", {})
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: proxy: it must be a table: [proxy]")
    try:
        config = ProxyConfig.model_validate(table)
    except ValidationError as error:
        raise misunderstood(path or Path("packetgate.toml"), error, SETTINGS, "proxy") from error
    for name in config.contexts:
        if not CONTEXT_NAME.fullmatch(name):
            raise ConfigError(f"{path}: proxy.contexts.{name}: a name in a URL is at most 64 of a-z, 0-9, - and _")
    return config


def checked_token(token: str, where: str) -> str:
    """Return a token that is worth having.

    Raises:
        ConfigError: it could be guessed.
    """
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{where}: a token is at least {SHORTEST_TOKEN} printable characters without spaces; "
            'make one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return token


def _filled(written: str, where: str) -> str:
    match = _VARIABLE.fullmatch(written)
    if match is None:
        return checked_token(written, where)
    value = os.environ.get(match[1], "")
    if not value:
        raise ConfigError(f"{where}: the environment has no {match[1]}: set it, or write the token there")
    return checked_token(value, where)
