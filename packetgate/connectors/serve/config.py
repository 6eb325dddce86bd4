"""The `[serve]` table of `packetgate.toml`: which clients there are, and what each may use."""

from typing import ClassVar

from packetgate.connectors.clients import Clients


class ServeConfig(Clients):
    """The whole table."""

    TABLE: ClassVar[str] = "serve"
    SETTINGS: ClassVar[str] = (
        "not known: `[serve]` may hold strict, and `[serve.clients.NAME]` with token, servers, tools, allow_writes, "
        "allow_commands"
    )

    strict: bool = False
    """Whether a request with tools of the client is refused; otherwise its tools are ignored."""
