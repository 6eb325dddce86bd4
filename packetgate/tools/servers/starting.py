"""Create the connection for an entry of `mcp.json`."""

import os
from pathlib import Path

from fastmcp.client.transports import ClientTransport

from packetgate.state.redaction import learn, learn_entry
from packetgate.tools.servers.config import ServerConfig
from packetgate.tools.servers.connection import Connection
from packetgate.tools.servers.http import RemoteTransport
from packetgate.tools.servers.results import Keep
from packetgate.tools.servers.stdio import LoggedTransport, ServerLog
from packetgate.tools.servers.stored_listings import StoredListings
from packetgate.tools.spec.standing import ground_of
from packetgate.tools.spec.tool_spec import digest_of

NETWORK_VARIABLES = (
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY"
    " http_proxy https_proxy no_proxy all_proxy"
).split()
"""Passed to server processes beside MCP's own list: `npx` and `uvx` need them to install packages."""


def configured(
    config: ServerConfig,
    log_dir: Path,
    keep: Keep | None = None,
    keep_file: Keep | None = None,
    listings: StoredListings | None = None,
) -> Connection:
    """Return the connection to a configured server, which logs to a file in `log_dir`."""
    log = ServerLog(log_dir / f"{config.name}.log") if "command" in config.entry else None

    def transport() -> ClientTransport:
        entry = config.filled()
        learn_entry(config.name, entry)
        for name, value in config.variables().items():
            learn(name, value)
        if log is None:
            return RemoteTransport(entry)
        log.start()
        inherited = {name: os.environ[name] for name in NETWORK_VARIABLES if name in os.environ}
        command = [entry["command"], *entry.get("args", ())]
        return LoggedTransport(command, entry.get("cwd"), {**inherited, **entry.get("env", {})}, log)

    return Connection(
        config.name,
        transport,
        trusted=config.trusted,
        timeout_s=config.timeout_s,
        log=log,
        concealed=config.concealed,
        digest=lambda: digest_of(config.filled()),
        ground=lambda: ground_of(config.filled()),
        offers=config.offers,
        keep=keep,
        keep_file=keep_file,
        listings=listings,
    )
