"""A process that waits until the test run ends, and then kills the run's remaining processes."""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

MARK = "PYTEST_RUN"
"""The variable that marks the processes of a run. MCP servers do not get it, because they exit with their clients."""


def left(run: str) -> list[int]:
    """Return the ids of the processes with a run's mark."""
    mark = f"{MARK}={run}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


if __name__ == "__main__":
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    sys.stdin.read()
    while pids := left(sys.argv[1]):
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
