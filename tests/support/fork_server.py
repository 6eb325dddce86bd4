"""A process that imports Packetgate once, and forks for every command to save the imports.

A forked process has its own arguments, folder, environment, standard streams, terminal, signals and exit status. Python
and the imported packages read only the fork server's environment, when it starts. Commands for which this matters need
`cli.start`.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

COMMAND = Path(sys.executable).with_name("packetgate")
PROCESS = Path(__file__).with_name("fork_server_process.py")

Streams = tuple[int, int, int]
"""File descriptors of standard input, output and errors."""


class Forked:
    """A running command."""

    def __init__(self, report: IO[str]) -> None:
        self.pid = int(report.readline())
        self.returncode: int | None = None
        self._report = report

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit, and return the exit status, which is negative after a signal."""
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(COMMAND), timeout or 0)
            with self._report:
                self.returncode = int(self._report.readline())
        return self.returncode

    def kill(self) -> None:
        """Kill the command if it runs, and wait until it has exited."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()


class ForkServer:
    """The fork server of a test process, which exits with that process."""

    def __init__(self) -> None:
        self._socket, its = socket.socketpair()
        with its:
            command = [sys.executable, str(PROCESS), str(its.fileno()), str(COMMAND)]
            nowhere = subprocess.DEVNULL
            self._process = subprocess.Popen(command, pass_fds=[its.fileno()], stdin=nowhere, stdout=nowhere)
        self._lock = threading.Lock()

    def start(
        self, args: Sequence[str], folder: Path, environment: Mapping[str, str], streams: Streams, *, terminal: bool
    ) -> Forked:
        """Start `packetgate` on three streams; on a terminal, as the leader of its session."""
        request = {"args": list(args), "folder": str(folder), "environment": dict(environment), "terminal": terminal}
        payload = json.dumps(request).encode()
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as report, self._lock:
            socket.send_fds(self._socket, [len(payload).to_bytes(8, "big")], [report.fileno(), *streams])
            self._socket.sendall(payload)
        return Forked(os.fdopen(reading))


@cache
def fork_server() -> ForkServer:
    """Return the fork server of this process."""
    return ForkServer()
