"""The benchmarks run and print ratios. No test checks a ratio's size, because it depends on the machine."""

import json
import shutil

import pytest

from benchmarks import overhead, startup
from benchmarks.mcp_calls import __main__ as calls
from benchmarks.ratio import Ratio, show


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off warm-up rounds, which only make times more exact."""
    for benchmark in (overhead, startup, calls):
        monkeypatch.setattr(benchmark, "WARM_UP", 0)


def test_a_ratio_is_the_median_of_its_pairs() -> None:
    ratio = Ratio("x", cost=[30.0, 20.0, 90.0], base=[10.0, 20.0, 10.0], goal=2.0, notes={"rest": 1.0})
    assert ratio.median == 3.0
    assert ratio.spread == (1.0, 9.0)
    first, second, third = ratio.as_text().splitlines()
    assert first == "x: 3.00 times the base (1.00 to 9.00), goal 2.0"
    assert second == "  cost 30.0 ms, base 10.0 ms, median of 3 interleaved runs"
    assert third == "  ms: rest 1.0"


def test_a_turn_is_compared_with_the_agent_and_with_empty_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    show(overhead.measure(1, ["no checkpoints, 10 tools"]), as_json=True)
    agent, approvals, floor = map(json.loads, capsys.readouterr().out.splitlines())
    assert {one["beside"]: one["goal"] for one in (agent, approvals, floor)} == overhead.GOALS
    assert agent["cost_ms"] == floor["cost_ms"] > 0
    assert floor["notes_ms"].keys() > {"build_palette", "select_tool", "review_selection", "execute_tool", "respond"}


def test_each_kind_of_start_is_measured() -> None:
    ratios = list(startup.measure(1))
    assert [one.name for one in ratios] == list(startup.STARTS)
    assert all(one.notes["the clock"] > 0 for one in ratios)


def test_calls_are_measured_and_missing_libraries_are_reported(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **options: None if name == "uv" else which(name, **options))
    monkeypatch.setattr(calls, "AT_ONCE", {2: "two calls"})
    ratios = list(calls.measure(1))
    assert [(one.name, one.beside) for one in ratios] == [
        ("two calls", calls.SDK),
        ("two calls", "langchain.mcp"),
        ("two calls, judged and journaled", calls.SDK),
    ]
    assert "langchain-mcp-adapters is left out: " in capfd.readouterr().err
