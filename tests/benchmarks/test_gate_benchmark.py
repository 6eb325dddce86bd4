"""The benchmark of the gate: real routing with small catalogues, and metrics calculated by hand."""

from pathlib import Path
from typing import Any

import pytest
from support.tool_specs import files_catalogue

from benchmarks.gate.figures import Point, judged, sweep
from benchmarks.gate.runs import Run, Selector, read_runs, routed
from benchmarks.gate.sets import Labelled, own_requests
from packetgate.deciders.choosing import reflex_deciders
from packetgate.lab.fitting import Bin, calibration_error, reliability
from packetgate.state.routing import Risk

REPOSITORY = Path(__file__).parents[2]
FILES = files_catalogue()


def ran(*chosen: str, wanted: str = "a", review: float = 0.0, **more: Any) -> Run:
    return Run(selector="packetgate", request="x", wanted=tuple(wanted.split()), chosen=chosen, review=review, **more)


async def only(request: str, selector: Selector, *wanted: str) -> Run:
    asked = Labelled(request, FILES, frozenset(wanted))
    (run,) = [run async for run in routed([asked], reflex_deciders(), selector)]
    return run


async def test_a_request_is_routed_up_to_the_gate():
    run = await only("Read plan.txt", "packetgate", "files.read_file")
    assert (run.chosen, run.outcome, run.right, run.risk) == (("files.read_file",), "passed", True, Risk.READ)
    assert run.selection >= 0.7
    assert run.review >= 0.7


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


def test_the_recorded_runs_cover_our_requests_with_both_selectors():
    runs = read_runs(REPOSITORY / "notebooks" / "data" / "gate_runs.jsonl")
    own = own_requests()
    for selector in ("packetgate", "careless"):
        kept = [(run.request, set(run.wanted)) for run in runs if run.selector == selector]
        assert kept == [(one.text, set(one.wanted)) for one in own]
    assert all(one.wanted <= set(one.catalogue) for one in own)
    assert sum(not one.wanted for one in own) == 24
