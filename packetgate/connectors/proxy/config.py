"""The `[proxy]` table of `packetgate.toml`: which clients there are, what each may use, and contexts by name."""

import re
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from packetgate.connectors.clients import Clients, load_clients
from packetgate.state.errors import ConfigError
from packetgate.tools.catalogue.preferences import NonEmpty

CONTEXT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class ProxyConfig(Clients):
    """The whole table."""

    TABLE: ClassVar[str] = "proxy"
    SETTINGS: ClassVar[str] = (
        "not known: `[proxy]` may hold `[proxy.clients.NAME]` with token, servers, tools, allow_writes, "
        "allow_commands, and `[proxy.contexts]` with what each name stands for"
    )

    contexts: dict[NonEmpty, NonEmpty] = Field(default={})
    """By the name in `/context/NAME/mcp`: what its list is chosen for."""

    def query_of(self, context: str) -> str:
        """Return what a context's name in a URL stands for: what is configured, or its own words."""
        return self.contexts.get(context) or context.replace("-", " ").replace("_", " ")


def load_proxy_config(path: Path | None) -> ProxyConfig:
    """Read the table; without a file, or without the table in it, there is one client, which may use everything.

    Raises:
        ConfigError: the file cannot be read, or the table says what is not understood.
    """
    config = load_clients(ProxyConfig, path)
    for name in config.contexts:
        if not CONTEXT_NAME.fullmatch(name):
            raise ConfigError(f"{path}: proxy.contexts.{name}: a name in a URL is at most 64 of a-z, 0-9, - and _")
    return config
