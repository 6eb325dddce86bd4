"""Two MCP servers with similar descriptions: one makes images, one makes text art."""

from typing import Any

from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection

FOX = "Create an image of a fox"
ASCII, IMAGE = "banner.create_ascii_art", "studio.paint"


class Studio:
    """The servers `banner` and `studio`; `drawn` is what their tools were called with."""

    def __init__(self) -> None:
        self.drawn: list[tuple[str, str]] = []
        banner: FastMCP[Any] = FastMCP("banner")
        studio: FastMCP[Any] = FastMCP("studio")
        banner.tool(self.create_ascii_art)
        studio.tool(self.paint)
        self.banner, self.studio = _connection("banner", banner), _connection("studio", studio)

    async def create_ascii_art(self, prompt: str) -> str:
        """Create an image of anything, as ASCII art."""
        self.drawn.append((ASCII, prompt))
        return "/\\_/\\"

    async def paint(self, prompt: str, width: int = 512) -> str:
        """Paint a picture: gives back the address of the image."""
        self.drawn.append((IMAGE, prompt))
        return f"{width} pixels of {prompt}"


def _connection(name: str, server: FastMCP[Any]) -> Connection:
    return Connection(ServerConfig(name, {}), lambda: FastMCPTransport(server))
