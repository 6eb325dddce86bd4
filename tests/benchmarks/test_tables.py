"""The script writes tables from stored results, and can measure results again."""

import re
import runpy
import sys

import pytest

from benchmarks.plots import FOLDER as PLOTTED
from benchmarks.plots import PLOTS, drawn
from benchmarks.results_kept import FOLDER, Result, Run, read
from benchmarks.tables import TABLES, ratios
from packetgate.state.errors import ConfigError


def result(*runs: Run) -> Result:
    return Result(date="2026-01-02", machine="an abacus", versions={"pytest": "0"}, runs=runs)


@pytest.mark.parametrize(("goal", "met"), [(2.0, "at most 2.0, met"), (1.99, "at most 1.99, missed"), (None, "")])
def test_a_missed_goal_is_marked(goal: float | None, met: str) -> None:
    line = {"name": "a call", "beside": "theirs", "ratio": 2.0, "spread": [0.012, 2.5], "goal": goal}
    run = Run(title="calls", command="python -m benchmarks", printed=({**line, "cost_ms": 4, "base_ms": 2},) * 2)
    *_, first, second = ratios(result(run))
    assert first == f"| a call | 4.0 | theirs | 2.0 | 2.00 | 0.012 to 2.50 | {met} |"
    assert second.startswith("|  | 4.0 |")


@pytest.mark.parametrize("name", PLOTS)
def test_plots_match_the_stored_results(name: str) -> None:
    (now, places), (kept, kept_places) = (parts(svg) for svg in (drawn(name), (PLOTTED / f"{name}.svg").read_text()))
    assert now == kept, "out of date: run python -m benchmarks.tables"
    assert places == pytest.approx(kept_places, abs=1), "out of date: run python -m benchmarks.tables"


def parts(svg: str) -> tuple[str, list[float]]:
    """Return a plot without coordinates and ids, whose digits differ by processor, and its coordinates in points."""
    shape = re.sub(r'(id="|#)[mp][0-9a-f]{10}\b', r"\1", svg)
    return re.sub(PLACE, "", shape), [float(one) for one in re.findall(PLACE, shape)]


PLACE = re.compile(r'(?<=[ "(])-?\d+(?:\.\d+)?\b(?![^<]*</text>)')


def test_plots_differ_where_a_result_does() -> None:
    kept = (PLOTTED / "startup.svg").read_text()
    assert parts(kept.replace(">1,304<", ">1,305<"))[0] != parts(kept)[0]
    assert parts(kept) == parts(re.sub(r"m[0-9a-f]{10}", "m0123456789", kept))


def test_every_stored_result_has_a_table() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == {of for of, _ in TABLES.values()}
    for name, (of, make) in TABLES.items():
        assert len(list(make(read(of)))) > 2, name


def test_measuring_runs_the_commands_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKETGATE_DATA", "here")
    code = "import json, sys; print(json.dumps({'name': sys.argv[1]}))"
    again = result(Run(title="x", command=f'python -c "{code}" $PACKETGATE_DATA', printed=())).again("a quipu")
    assert (again.machine, again.versions["pytest"]) == ("a quipu", pytest.__version__)
    assert again.date > "2026-01-02"
    assert again.runs[0].printed == ({"name": "here"},)


@pytest.mark.parametrize(
    ("command", "problem"),
    [("python -m benchmarks.tokens $NO_SUCH_FOLDER", "set the variables of"), ("python -c 1/0", "ZeroDivisionError")],
)
def test_a_command_that_cannot_run_is_reported(command: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Run(title="x", command=command, printed=()).again()


def test_stored_commands_print_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [run.command.split() for of in {of for of, _ in TABLES.values()} for run in read(of).runs]
    assert all("--json" in words for words in commands)
    for module in {words[2] for words in commands}:
        monkeypatch.setattr(sys, "argv", [module, "--help"])
        for imported in (module, f"{module}.__main__"):  # another test may have imported it
            monkeypatch.delitem(sys.modules, imported, raising=False)
        with pytest.raises(SystemExit):
            runpy.run_module(module, run_name="__main__")
        assert "--json" in capsys.readouterr().out
