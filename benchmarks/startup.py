"""From the start of `packetgate ask` to its answer, beside a process that only imports what it stands on."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.ratio import Ratio, arguments, show

GOAL = 1.5
RUNS = 10
ASK = [sys.executable, "-c", "from connectors.command_line import main; main()", "ask", "Read pyproject.toml"]
IMPORTS = [sys.executable, "-c", "from langgraph.graph import StateGraph; from fastmcp import Client, FastMCP"]
REPOSITORY = Path(__file__).parents[1]


def measure(runs: int = RUNS) -> list[Ratio]:
    """Measure whole processes, after one of each that fills the caches."""
    with tempfile.TemporaryDirectory() as home:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PACKETGATE_")}
        environment = {**kept, "PACKETGATE_HOME": home}
        pairs = [(_seconds(ASK, environment), _seconds(IMPORTS, environment)) for _ in range(runs + 1)][1:]
    asks, imports = zip(*pairs, strict=True)
    return [Ratio("startup", [1000 * one for one in asks], [1000 * one for one in imports], GOAL)]


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    given = arguments(__doc__ or "", RUNS)
    show(measure(given.runs), as_json=given.json)
