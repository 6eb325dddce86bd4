"""A service that several machines use, each through its own MCP server; it logs every action."""

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from support import plain_server

SERVER = f"""
import asyncio, os, pathlib, sys
sys.path[0] = {str(Path(plain_server.__file__).parent)!r}
from plain_server import PlainServer
log = os.open(pathlib.Path(sys.argv[1]), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
def note(what, room):
    os.write(log, f"{{what}} {{room}} {{os.getppid()}}\\n".encode())
async def book_room(room):
    "Book a room."
    note("begun", room)
    await asyncio.sleep(0.4)
    note("booked", room)
    await asyncio.sleep(0.4)
    note("ended", room)
    return f"{{room}} is booked"
server = PlainServer("hotel")
server.tool(book_room)
server.run()
"""


@dataclass(frozen=True)
class Hotel:
    """Rooms, and the log of their bookings."""

    folder: Path

    def configure(self, folder: Path) -> str:
        """Write a machine's configuration into its folder, and return its path."""
        entry = {
            "command": sys.executable,
            "sandbox": "off",
            "args": ["-c", SERVER, str(self.folder / "log")],
            "trusted": True,
        }
        config = folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"hotel": entry}}))
        return str(config)

    def lines(self) -> list[list[str]]:
        """Return the log: action, room and requesting process."""
        file = self.folder / "log"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def bookings(self, room: str | None = None) -> int:
        """Return how often a room, or any room, was booked."""
        return sum(what == "booked" and room in {None, of} for what, of, _ in self.lines())

    def in_calls(self, process: int, since: str = "begun") -> int:
        """Return the number of unfinished calls of a process, or of those that reached a step."""
        done = Counter(what for what, _, asker in self.lines() if asker == str(process))
        return done[since] - done["ended"]
