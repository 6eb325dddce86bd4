"""The commands of the benchmarks print the metrics of a small data set as JSON, and one line for invalid input."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
TOOL = {"id": "sky/forecast", "server": "sky", "name": "forecast", "description": "Weather."}
QUERY = {"query": "the weather", "gold": ["sky/forecast"]}


def run(benchmark: str, *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *map(str, args)]
    environment = {name: value for name, value in os.environ.items() if name != "PACKETGATE_DATA"}
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("benchmark", "figures"),
    [
        ("ranking", {"name": "packetgate", "queries": 1, "tools": 1, "recall@1": 1.0}),
        ("palette", {"name": "packetgate", "on_palette": 1}),
        ("tokens", {"set": "files", "tools": 1, "requests": 1, "goal": None}),
    ],
)
def test_the_figures_of_a_data_set_are_printed(benchmark: str, figures: dict[str, Any], tmp_path: Path) -> None:
    files = {"--tools": TOOL, "--queries": QUERY}
    for option, row in files.items():
        (tmp_path / option).write_text(json.dumps(row), encoding="utf-8")
    done = run(benchmark, *(word for option in files for word in (option, tmp_path / option)), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert figures.items() <= json.loads(done.stdout.splitlines()[0]).items()


@pytest.mark.parametrize(
    ("benchmark", "args", "named"),
    [
        ("ranking", "--tools missing.jsonl --queries tests", "benchmarks.ranking: missing.jsonl"),
        ("palette", "--tools t.jsonl", "--data or PACKETGATE_DATA"),
        ("palette", "--data nowhere", "nowhere"),
        ("proxy", "", "--data or PACKETGATE_DATA"),
        ("proxy", "--data tests", "tests/tooleyes/tools.jsonl"),
        ("gate", "nowhere", "benchmarks.gate: nowhere"),
        ("gate", "--runs nowhere", "benchmarks.gate: nowhere"),
        ("tokens", "--tools t.jsonl", "--tools and --queries go together"),
        ("tokens", "nowhere", "benchmarks.tokens: nowhere/livemcpbench does not exist"),
        ("selection", "--cases nowhere", "nowhere"),
    ],
)
def test_invalid_input_is_named(benchmark: str, args: str, named: str) -> None:
    done = run(benchmark, *args.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
