"""The `packetgate` command as a user runs it: a process of its own, in a folder of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

COMMAND = Path(sys.executable).with_name("packetgate")


@dataclass(frozen=True)
class CommandLine:
    """Runs `packetgate` in `folder`, with everything it keeps in `home`."""

    folder: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """The test's own environment without settings of Packetgate or of models."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PACKETGATE_", "OPENAI_"))}
        path = f"{COMMAND.parent}{os.pathsep}{kept['PATH']}"
        return {**kept, "PATH": path, "PACKETGATE_HOME": str(self.home), "COLUMNS": "120"}

    def run(self, *args: str, given: bytes = b"", **variables: str) -> "Outcome":
        """Run a command to its end; `given` is its standard input."""
        done = subprocess.run(
            [str(COMMAND), *args],
            cwd=self.folder,
            env={**self.environment, **variables},
            input=given,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    out: str
    err: str
