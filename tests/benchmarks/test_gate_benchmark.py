"""The benchmark of the gate: real routing with small catalogues, and figures calculated by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.tool_specs import files_catalogue

from benchmarks.gate.figures import Point, judged, outcomes, sweep
from benchmarks.gate.runs import Run, Selector, read_runs, routed, write_runs
from benchmarks.gate.sets import Labelled, bfcl, own_requests
from packetgate.deciders.choosing import reflex_deciders
from packetgate.state.errors import InputError
from packetgate.state.routing import Risk
from packetgate.tools.evaluation.calibration import Bin, calibration_error, reliability

REPOSITORY = Path(__file__).parents[2]
FILES = files_catalogue()


def ran(*chosen: str, wanted: str = "a", review: float = 0.0, **more: Any) -> Run:
    return Run(selector="packetgate", request="x", wanted=tuple(wanted.split()), chosen=chosen, review=review, **more)


async def only(request: str, selector: Selector, *wanted: str) -> Run:
    asked = Labelled(request, FILES, frozenset(wanted))
    (run,) = [run async for run in routed([asked], reflex_deciders(), selector)]
    return run


def rows(path: Path, *objects: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, objects)) + "\n")


async def test_a_request_is_routed_up_to_the_gate():
    run = await only("Read plan.txt", "packetgate", "files.read_file")
    assert (run.chosen, run.outcome, run.right, run.risk) == (("files.read_file",), "passed", True, Risk.READ)
    assert run.selection >= 0.7
    assert run.review >= 0.7


async def test_without_a_fitting_tool_or_a_needed_value_there_is_no_call():
    greeting = await only("Hello!", "packetgate")
    assert (greeting.chosen, greeting.outcome, greeting.right) == ((), "no call", False)
    unclear = await only("Read a file", "packetgate", "files.read_file")
    assert (unclear.chosen, unclear.outcome) == ((), "unclear")


async def test_the_careless_selector_always_calls_and_made_up_values_do_not_pass_the_review():
    run = await only("Hello!", "careless")
    assert run.chosen
    assert (run.selection, run.right) == (1.0, False)
    assert run.review < 0.7
    assert run.outcome in {"asked", "skipped"}
    assert run == await only("Hello!", "careless")


def test_several_calls_are_right_only_if_all_are_right():
    assert ran("a", "a").right
    assert not ran("a", "b").right
    assert not ran().right
    assert ran("b", wanted="a b").right


def test_bins_count_calls_and_their_share_of_right_calls():
    runs = [ran("a", review=0.7), ran("b", review=0.75), ran("a", review=1.0), ran("a", review=0.95), ran(review=0.7)]
    low, high = reliability(judged(runs, "review"))
    assert low == Bin(0.7, 0.8, 2, 0.725, 0.5)
    assert (high.low, high.high, high.count, high.right) == (0.9, 1.0, 2, 1.0)
    assert high.confidence == pytest.approx(0.975)
    assert calibration_error([low, high]) == pytest.approx((2 * 0.225 + 2 * 0.025) / 4)
    assert calibration_error([]) == 0.0


def test_calls_at_the_threshold_pass():
    runs = [ran("a", review=0.7), ran("b", review=0.69), ran("a", review=0.95), ran()]
    assert sweep(runs, thresholds=(0.0, 0.7, 0.96)) == [
        Point(0.0, 0.75, 2 / 3), Point(0.7, 0.5, 1.0), Point(0.96, 0.0, None)
    ]  # fmt: skip
    assert sweep([], thresholds=(0.5,)) == [Point(0.5, 0.0, None)]


def test_outcomes_are_counted_as_right_or_wrong():
    runs = [
        ran("a", outcome="passed"), ran("b", outcome="passed"), ran("b", outcome="asked"), ran("a", outcome="skipped"),
        ran(outcome="unclear"), ran(outcome="unclear", wanted=""), ran(outcome="no call", wanted=""), ran(),
    ]  # fmt: skip
    assert outcomes(runs) == {
        "asked": (1, 0), "no call": (1, 1), "passed": (1, 1), "skipped": (0, 1), "unclear": (1, 1)
    }  # fmt: skip


def test_the_recorded_runs_cover_our_requests_with_both_selectors():
    runs = read_runs(REPOSITORY / "notebooks" / "data" / "gate_runs.jsonl")
    own = own_requests()
    for selector in ("packetgate", "careless"):
        kept = [(run.request, set(run.wanted)) for run in runs if run.selector == selector]
        assert kept == [(one.text, set(one.wanted)) for one in own]
    assert all(one.wanted <= set(one.catalogue) for one in own)
    assert sum(not one.wanted for one in own) == 24


def test_runs_are_stored_and_an_invalid_file_is_named(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    runs = [ran("a", outcome="asked", review=0.5), ran()]
    write_runs(path, runs)
    assert read_runs(path) == runs
    path.write_text('{"selector": "nobody"}\n')
    with pytest.raises(InputError, match=r"runs\.jsonl: not a file of recorded runs"):
        read_runs(path)


def test_a_sample_of_bfcl_covers_the_whole_file(tmp_path: Path):
    sides = {"side": {"type": "float"}, "unit": {"type": "any"}}
    parameters = {"type": "dict", "required": ["side"], "properties": sides}
    tool = {"name": "area.get", "description": "The area.", "parameters": parameters}
    questions = [
        {"id": str(n), "question": [[{"role": "user", "content": f"Area {n}"}]], "function": [tool]} for n in range(9)
    ]
    rows(tmp_path / "bfcl_v4" / "multiple.jsonl", *questions)
    rows(tmp_path / "bfcl_v4" / "possible_answer" / "multiple.jsonl",
         *({"id": str(n), "ground_truth": [{"area.get": {"side": [n]}}]} for n in range(9)))  # fmt: skip
    for name in ("live_multiple", "irrelevance"):
        rows(tmp_path / "bfcl_v4" / f"{name}.jsonl", questions[0])
    taken = bfcl(tmp_path, each=3)
    assert [one.text for one in taken] == ["Area 0", "Area 3", "Area 6", "Area 0", "Area 0"]
    assert [set(one.wanted) for one in taken] == [{"bfcl.area.get"}] * 3 + [set(), set()]
    schema = taken[0].catalogue["bfcl.area.get"].input_schema
    assert (schema["type"], schema["properties"]) == ("object", {"side": {"type": "number"}, "unit": {}})
