"""A server that counts how often it was read, and says how long what it tells holds. It runs here, or by itself."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult

from packetgate.tools.servers.connection import Connection


class Tide:
    """A gauge behind a server: each read counts one, so that what came from a cache can be told from what was read."""

    def __init__(self, hint: dict[str, Any] | None = None, said: dict[str, Any] | None = None) -> None:
        """`hint` is the metadata of the tool that reads, `said` that of each of its results."""
        self.reads = 0
        self.level = "low"
        self.answer: Any = None
        """In place of the level."""
        self.said = said
        self.server: FastMCP[Any] = FastMCP("tide")
        self.server.tool(self.read_level, meta=hint)
        self.server.tool(self.set_level)

    def connection(self, timeout_s: float = 30.0) -> Connection:
        """Return a connection to the server in this process."""
        return Connection("tide", lambda: FastMCPTransport(self.server), trusted=False, timeout_s=timeout_s)

    async def read_level(self, place: str) -> ToolResult:
        """Read the level of the tide at a place."""
        self.reads += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        text = self.answer or f"{place}: {self.level}, read number {self.reads}"
        return ToolResult(content=text, meta=self.said)

    async def set_level(self, level: str) -> str:
        """Set the level of the tide."""
        if level == "stormy":
            raise ToolError("nobody sets that")
        if level == "endless":
            await asyncio.Event().wait()
        self.level = level
        return f"it is {level}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    Tide({"ttlMs": 60_000}).server.run(show_banner=False)
