"""A stdio server with slow tools. Its argument is the folder of its log files."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Clock:
    """The server, observed by its log files in `folder`."""

    folder: Path

    @property
    def begun(self) -> list[str]:
        """The slow calls that began, oldest first."""
        return self._lines("begun")

    @property
    def stopped(self) -> list[str]:
        """The slow calls that were cancelled, oldest first."""
        return self._lines("stopped")

    def begin(self) -> None:
        """Delete the log files; slow calls do not end."""
        for name in ("begun", "stopped", "may_strike"):
            (self.folder / name).unlink(missing_ok=True)

    def strike(self) -> None:
        """Let slow calls end."""
        (self.folder / "may_strike").touch()

    def configure(self, file: Path) -> Path:
        """Write an `mcp.json` with the server and the built-in tools."""
        entry = {"command": sys.executable, "sandbox": "off", "args": [__file__, str(self.folder)], "trusted": True}
        file.write_text(json.dumps({"mcpServers": {"clock": entry}, "builtin": True}))
        return file

    def _lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


async def get_process_number() -> str:
    """Get the number of the clock's process."""
    return f"process number {os.getpid()}"


async def await_stroke(hour: str) -> str:
    """Wait until the clock strikes."""
    return await _strike("await_stroke", hour)


async def set_alarm(hour: str) -> str:
    """Set the alarm of the clock."""
    return await _strike("set_alarm", hour)


async def _strike(tool: str, hour: str) -> str:
    folder = Path(sys.argv[1])
    _leave(folder / "begun", f"{tool} {hour}")
    try:
        while not (folder / "may_strike").exists():  # noqa: ASYNC110 - another process lets it strike
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        _leave(folder / "stopped", f"{tool} {hour}")
        raise
    return f"it struck {hour}"


def _leave(file: Path, line: str) -> None:
    with file.open("a") as trace:
        trace.write(f"{line}\n")


if __name__ == "__main__":
    from plain_server import PlainServer  # in the folder of this script

    server = PlainServer("clock")
    server.reading(get_process_number)
    server.reading(await_stroke)
    server.tool(set_alarm)
    server.run()
