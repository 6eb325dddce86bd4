"""The benchmarks run, and print ratios; how large they are depends on the machine, so no test says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.ratio import Ratio

REPOSITORY = Path(__file__).parents[2]


def run(*args: str) -> str:
    done = subprocess.run([sys.executable, "-m", *args], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_ratio_is_the_median_of_its_pairs() -> None:
    ratio = Ratio("x", cost=[30.0, 20.0, 90.0], base=[10.0, 20.0, 10.0], goal=2.0)
    assert ratio.median == 3.0
    assert ratio.spread == (1.0, 9.0)
    assert ratio.as_text().startswith("x: 3.00 times the base (1.00 to 9.00), goal 2.0\n  cost 30.0 ms, base 10.0 ms")


@pytest.mark.parametrize(("module", "name"), [("startup", "small talk"), ("journey", "journey")])
def test_each_prints_for_people(module: str, name: str) -> None:
    first, second, *_ = run(f"benchmarks.{module}", "--runs", "1").splitlines()
    assert first.startswith(f"{name}: ")
    assert "times the base" in first
    assert "goal" in first
    assert "median of 1 interleaved runs" in second


def test_all_print_for_scripts() -> None:
    hello, read, journey, alone = map(json.loads, run("benchmarks", "--runs", "2", "--json").splitlines())
    assert (hello["name"], hello["goal"], hello["runs"]) == ("small talk", 1.4, 2)
    assert (read["name"], read["goal"], read["runs"]) == ("read", 1.8, 2)
    assert (journey["name"], journey["goal"], journey["runs"]) == ("journey", 2.0, 2)
    assert all(one["cost_ms"] > 0 and one["base_ms"] > 0 for one in (hello, read, journey, alone))
    assert 0 < alone["cost_ms"] < journey["cost_ms"]
    assert journey["notes_ms"]["of which the call to the tool's server"] > 0
