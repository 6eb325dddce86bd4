"""Read and store results in `benchmarks/results/`: the printed lines, the date, the machine and the commands."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from packetgate.state.errors import ConfigError

FOLDER = Path(__file__).parent / "results"
ROOT = FOLDER.parents[1]


class Run(BaseModel):
    """One command and the lines that it printed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    origin: str | None = None
    """The address at which the data set is published."""
    licence: str | None = None
    command: str
    """Shell command, run in the root of the checkout; `$NAME` is an environment variable."""
    printed: tuple[dict[str, Any], ...]

    def words(self) -> list[str]:
        """Return the command as a list, with variables replaced.

        Raises:
            ConfigError: a variable is not set.
        """
        command = os.path.expandvars(self.command)
        if "$" in command:
            raise ConfigError(f"{self.title}: set the variables of `{self.command}`")
        return [sys.executable if word == "python" else word for word in shlex.split(command)]

    def again(self) -> "Run":
        """Run the command again, and return it with its new output lines.

        Raises:
            ConfigError: a variable is not set, or the command failed.
        """
        done = subprocess.run(self.words(), cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ConfigError(f"{self.title}: `{self.command}` failed: {done.stderr.strip()[-400:]}")
        return self.model_copy(update={"printed": tuple(map(json.loads, done.stdout.splitlines()))})


class Result(BaseModel):
    """The measurements of one benchmark on one day."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    machine: str
    versions: dict[str, str]
    """Versions of the compared libraries."""
    runs: tuple[Run, ...]

    @property
    def lines(self) -> list[Mapping[str, Any]]:
        """The printed lines of all runs."""
        return [line for run in self.runs for line in run.printed]

    def again(self, machine: str) -> "Result":
        """Run all commands again, and return the new result. `machine` describes this machine."""
        return Result(
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            machine=machine,
            versions={name: version(name) for name in self.versions},
            runs=tuple(run.again() for run in self.runs),
        )


def read(name: str) -> Result:
    """Return a stored result."""
    return Result.model_validate_json((FOLDER / f"{name}.json").read_bytes())


def keep(name: str, result: Result) -> None:
    """Store a result."""
    written = json.dumps(result.model_dump(mode="json", exclude_none=True), indent=2, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(written + "\n")
