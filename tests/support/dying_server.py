"""An MCP server process that dies during every call."""

import os
import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.client.transports import StdioTransport

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection

server: FastMCP[None] = FastMCP("mail")


@server.tool
def send_mail(text: str) -> str:
    """Send a mail."""
    Path(sys.argv[1]).write_text(text, encoding="utf-8")
    os._exit(3)


def dying(log: Path) -> Connection:
    """Return a connection to the server; `log` has the received calls."""
    return Connection(ServerConfig("mail", {}), lambda: StdioTransport(sys.executable, [__file__, str(log)]))


if __name__ == "__main__":
    server.run("stdio", show_banner=False)
