"""A stdio server. Its argument is the folder of its log files."""

import asyncio
import os
import sys
import time
from pathlib import Path

from plain_server import PlainServer  # in the folder of this script

folder = Path(sys.argv[1])
server = PlainServer("stdio")


def leave(name: str, line: str) -> None:
    """Append a line to a file of the folder."""
    with (folder / name).open("a") as file:
        file.write(f"{line}\n")


@server.reading
async def get_pid() -> str:
    """Get the process id of this server."""
    leave("read", "get_pid")
    return str(os.getpid())


@server.reading
async def read_never() -> str:
    """Read something that never comes: killing the process ends it."""
    leave("read", "read_never")
    await asyncio.Event().wait()
    return ""


@server.reading
async def read_once_killed() -> str:
    """Read something; the first call dies with the whole process, later ones answer."""
    leave("read", "read_once_killed")
    if len((folder / "read").read_text().splitlines()) == 1:
        os._exit(9)
    return "read at last"


@server.tool
async def write_line(line: str) -> str:
    """Write a line, and die before saying so."""
    leave("written", line)
    os._exit(9)


if __name__ == "__main__":
    leave("pids", str(os.getpid()))
    while not (folder / "may_start").exists():
        time.sleep(0.01)
    server.run()
