"""A service that several machines use, each through its own MCP server. It logs every action."""

from collections import Counter
from pathlib import Path

from support.plain_server import Folder, configure, entry

SERVER = """
def note(what, room):
    folder.note("log", f"{what} {room} {os.getppid()}")
async def book_room(room):
    "Book a room."
    note("begun", room)
    await asyncio.sleep(0.4)
    note("booked", room)
    await asyncio.sleep(0.4)
    note("ended", room)
    return f"{room} is booked"
server.tool(book_room)
"""


class Hotel(Folder):
    """Rooms, and the log of their bookings."""

    def configure(self, folder: Path) -> str:
        """Write a machine's configuration into its folder, and return its path."""
        return str(configure(folder / "mcp.json", hotel=entry(SERVER, self.path)))

    @property
    def log(self) -> list[list[str]]:
        """The log: action, room and requesting process."""
        return [line.split() for line in self.lines("log")]

    def bookings(self, room: str | None = None) -> int:
        """Return how often a room, or any room, was booked."""
        return sum(what == "booked" and room in {None, of} for what, of, _ in self.log)

    def in_calls(self, process: int, since: str = "begun") -> int:
        """Return the number of unfinished calls of a process, or of those that have reached a step."""
        done = Counter(what for what, _, asker in self.log if asker == str(process))
        return done[since] - done["ended"]
