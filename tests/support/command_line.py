"""The `packetgate` command in a separate process and folder."""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from support.fork_server import COMMAND, Forked, Streams, fork_server

TIMEOUT_S = 120
READ_AT_START = ("PYTHON", "LC_", "LANG", "OTEL_", "FASTMCP_")
"""Prefixes of the variables that only a new process reads; PYTHONPATH may name a `sitecustomize`."""


@dataclass(frozen=True)
class CommandLine:
    """Runs `packetgate` in `folder`, with its data in `home`."""

    folder: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the test without settings of Packetgate or of models."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PACKETGATE_", "OPENAI_"))}
        path = f"{COMMAND.parent}{os.pathsep}{kept['PATH']}"
        return {**kept, "PATH": path, "PACKETGATE_HOME": str(self.home), "COLUMNS": "120"}

    def run(self, *args: str, given: bytes = b"", stdout: int | None = None, **variables: str) -> "Outcome":
        """Run a command in a forked process until it exits.

        Args:
            given: its standard input.
            stdout: a file for its output, instead of the outcome.
        """
        process_in, feeding = os.pipe()
        with TemporaryFile() as out, TemporaryFile() as err:
            streams = (process_in, out.fileno() if stdout is None else stdout, err.fileno())
            process = self.fork(args, streams, **variables)
            os.close(process_in)
            try:
                with suppress(BrokenPipeError), os.fdopen(feeding, "wb") as file:
                    file.write(given)
                status = process.wait(TIMEOUT_S)
            finally:
                process.kill()
            for file in (out, err):
                file.seek(0)
            return Outcome(status, out.read().decode(), err.read().decode())

    def fork(self, args: Sequence[str], streams: Streams, *, terminal: bool = False, **variables: str) -> Forked:
        """Let the fork server start a command on three streams."""
        assert not any(name.startswith(READ_AT_START) for name in {*variables} - {"PYTHONPATH"}), "this needs `start`"
        return fork_server().start(args, self.folder, self.environment | variables, streams, terminal=terminal)

    def start(self, *args: str, given: bytes = b"", **variables: str) -> "Outcome":
        """Run a command in a new process instead of a forked one, for tests of start-up."""
        command = [str(COMMAND), *args]
        environment = self.environment | variables
        done = subprocess.run(
            command, cwd=self.folder, env=environment, input=given, capture_output=True, timeout=TIMEOUT_S, check=False
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


@dataclass(frozen=True)
class Outcome:
    """The exit status and output of a command."""

    status: int
    out: str
    err: str
