"""What `packetgate ask` costs from start to exit, in processor time, beside a process that only imports LangGraph."""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.ratio import Ratio, arguments, show

RUNS = 10
REPOSITORY = Path(__file__).parents[1]
BASE = (sys.executable, "-c", "import langgraph.graph")
ASK = (sys.executable, "-c", "from connectors.command_line import main; main()", "ask")
GOALS = {"small talk": ("hello", 1.4), "read": ("What does README.md say about the gate?", 1.8)}


def measure(runs: int = RUNS) -> list[Ratio]:
    """Measure whole processes in turns: one of each without compiled modules, one that compiles them, then those."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PACKETGATE_", "PYTHON"))}
        environment = {**kept, "PACKETGATE_HOME": folder, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        commands = {"base": BASE, **{name: (*ASK, request) for name, (request, _) in GOALS.items()}}
        bare = {**environment, "PYTHONDONTWRITEBYTECODE": "1"}
        turns = [bare] + [environment] * (runs + 1)
        first, _, *rounds = [{name: _cpu_ms(one, where) for name, one in commands.items()} for where in turns]
    base = [one["base"] for one in rounds]
    return [
        Ratio(
            name,
            [one[name] for one in rounds],
            base,
            goal,
            notes={"not compiled": first[name], "the base, not compiled": first["base"]},
        )
        for name, (_, goal) in GOALS.items()
    ]


def _cpu_ms(command: tuple[str, ...], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


if __name__ == "__main__":
    given = arguments(__doc__ or "", RUNS)
    show(measure(given.runs), as_json=given.json)
