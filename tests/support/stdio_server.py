"""A server process that tests can delay or kill. Its argument is the folder of its files."""

import os
import sys
import time

from plain_server import Folder, PlainServer  # in the folder of this script

folder = Folder(sys.argv[1])
server = PlainServer("stdio")


@server.reading
async def get_pid() -> str:
    """Get the process id of this server."""
    folder.note("read", "get_pid")
    return str(os.getpid())


@server.reading
async def read_once_killed() -> str:
    """Read something; the first call dies with the whole process, later ones answer."""
    folder.note("read", "read_once_killed")
    if len(folder.lines("read")) == 1:
        os._exit(9)
    return "read at last"


@server.tool
async def write_line(line: str) -> str:
    """Write a line, and die before saying so."""
    folder.note("written", line)
    os._exit(9)


if __name__ == "__main__":
    folder.note("pids", os.getpid())
    while not (folder / "may_start").exists():
        time.sleep(0.01)
    server.run()
