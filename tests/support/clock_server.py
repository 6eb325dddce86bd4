"""A clock as a server process with slow tools. Tests observe and release calls through its folder."""

from pathlib import Path

from support.plain_server import Folder, configure, entry

SERVER = """
async def get_process_number():
    "Get the number of the clock's process."
    return f"process number {os.getpid()}"
async def await_stroke(hour):
    "Wait until the clock strikes."
    return await strike("await_stroke", hour)
async def set_alarm(hour):
    "Set the alarm of the clock."
    return await strike("set_alarm", hour)
async def strike(tool, hour):
    folder.note("begun", f"{tool} {hour}")
    try:
        await folder.until("may_strike")
    except asyncio.CancelledError:
        folder.note("stopped", f"{tool} {hour}")
        raise
    return f"it struck {hour}"
server.reading(get_process_number)
server.reading(await_stroke)
server.tool(set_alarm)
"""


class Clock(Folder):
    """The server, observed by the files in its folder."""

    @property
    def begun(self) -> list[str]:
        """The slow calls that began, oldest first."""
        return self.lines("begun")

    @property
    def stopped(self) -> list[str]:
        """The slow calls that were cancelled, oldest first."""
        return self.lines("stopped")

    def begin(self) -> None:
        """Delete the files, so that slow calls do not end."""
        for name in ("begun", "stopped", "may_strike"):
            (self / name).unlink(missing_ok=True)

    def strike(self) -> None:
        """Let slow calls end."""
        (self / "may_strike").touch()

    def configure(self, file: Path) -> Path:
        """Write an `mcp.json` with the server and the built-in tools."""
        return configure(file, builtin=True, clock=entry(SERVER, self.path))
