"""An MCP server process that dies during every call."""

from pathlib import Path

from support.plain_server import entry

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.opening import new_connection

SERVER = """
async def send_mail(text):
    "Send a mail."
    folder.note("sent", text)
    os._exit(3)
server.tool(send_mail)
"""


def dying(folder: Path) -> Connection:
    """Return a connection to the server; the file `sent` in the folder has the received calls."""
    return new_connection(ServerConfig("mail", entry(SERVER, folder)), folder / "logs")
