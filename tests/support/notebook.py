"""A small MCP server with observable tools: reads, writes, failures, and tools that never answer."""

import asyncio
from typing import Any, Literal

from fastmcp import FastMCP
from fastmcp.client.transports import FastMCPTransport
from fastmcp.exceptions import ToolError

from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection


class Notebook:
    """Notes behind a server: tools read and change `notes`, and `calls` records them."""

    def __init__(self, name: str = "notebook", **notes: str) -> None:
        self.name = name
        self.notes = notes or {"a": "apples", "b": "bread", "c": "cheese", "d": "dates"}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.barrier: asyncio.Barrier | None = None
        """A barrier: no read answers before all reads have begun."""
        self.server: FastMCP[Any] = FastMCP(name)
        for tool in (
            *(self.read_note, self.list_notes, self.write_note, self.save_note, self.check_weather),
            *(self.fetch_slowly, self.send_letter, self.run_command),
        ):
            self.server.tool(tool)

    def connection(self, *, trusted: bool = False, timeout_s: float = 30.0) -> Connection:
        """Return a connection to the server in this process."""
        config = ServerConfig(self.name, {"trusted": trusted, "timeout": 1000 * timeout_s})
        return Connection(config, lambda: FastMCPTransport(self.server))

    @property
    def called(self) -> list[str]:
        """The called tools, in order."""
        return [name for name, _ in self.calls]

    async def read_note(self, name: str) -> str:
        """Read a note."""
        self.calls.append(("read_note", {"name": name}))
        if self.barrier:
            await self.barrier.wait()
        return self.notes[name]

    async def list_notes(self) -> str:
        """List the names of all notes."""
        self.calls.append(("list_notes", {}))
        return "\n".join(self.notes)

    async def write_note(self, name: str, text: str, mode: Literal["replace", "append"] = "replace") -> str:
        """Write a note."""
        self.calls.append(("write_note", {"name": name, "text": text, "mode": mode}))
        self.notes[name] = text
        return f"wrote {name}"

    async def save_note(self, name: str, text: str, dry_run: bool = False) -> str:
        """Save a note, or tell what saving it would do."""
        self.calls.append(("save_note", {"name": name, "text": text, "dry_run": dry_run}))
        if dry_run:
            return f"would save {len(text)} characters as {name}"
        self.notes[name] = text
        return f"saved {name}"

    async def check_weather(self, city: str) -> str:
        """Check the weather in a city."""
        self.calls.append(("check_weather", {"city": city}))
        raise ToolError("the weather station burned down")

    async def fetch_slowly(self, name: str) -> str:
        """Fetch something, and never come back."""
        self.calls.append(("fetch_slowly", {"name": name}))
        await asyncio.Event().wait()
        return ""

    async def send_letter(self, to: str, text: str) -> str:
        """Send a letter: it leaves, and nobody hears whether it arrived."""
        self.calls.append(("send_letter", {"to": to, "text": text}))
        self.notes["sent"] = text
        await asyncio.Event().wait()
        return ""

    async def run_command(self, command: str) -> str:
        """Run a command."""
        self.calls.append(("run_command", {"command": command}))
        return f"ran {command}"
