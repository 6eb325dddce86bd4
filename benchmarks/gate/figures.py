"""Compute metrics of recorded runs: the calibration of confidence, and the calls that pass a threshold."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.gate.runs import Run
from packetgate.state.context import RoutingContext

THRESHOLD = RoutingContext().confidence_threshold
THRESHOLDS = tuple(step / 20 for step in range(21))

Judge = Literal["selection", "review"]
"""The stage whose confidence is measured."""


@dataclass(frozen=True)
class Point:
    """The calls that pass a threshold."""

    threshold: float
    coverage: float
    """Share of all requests whose call passes, from 0 to 1."""
    precision: float | None
    """Share of the passing calls that call a right tool; None if no call passes."""


def judged(runs: Sequence[Run], judge: Judge) -> list[tuple[float, bool]]:
    """Return the judge's confidence in each run with calls, and whether the calls were right."""
    return [(run.confidence(judge), run.right) for run in runs if run.chosen]


def sweep(runs: Sequence[Run], judge: Judge = "review", thresholds: Sequence[float] = THRESHOLDS) -> list[Point]:
    """Return the passing calls for each threshold."""
    points = []
    for threshold in thresholds:
        passed = [run for run in runs if run.chosen and run.confidence(judge) >= threshold]
        precision = sum(run.right for run in passed) / len(passed) if passed else None
        points.append(Point(threshold, len(passed) / len(runs) if runs else 0.0, precision))
    return points


def outcomes(runs: Sequence[Run]) -> dict[str, tuple[int, int]]:
    """Return the number of right and wrong runs by outcome, at the default threshold.

    A run is right if it passes a right tool, stops a wrong tool, makes no call if no tool fits, or asks for a missing
    argument if a tool fits.
    """
    counted = Counter((run.outcome, _ended_well(run)) for run in runs)
    return {name: (counted[name, True], counted[name, False]) for name in sorted({run.outcome for run in runs})}


def _ended_well(run: Run) -> bool:
    match run.outcome:
        case "passed":
            return run.right
        case "asked" | "skipped":
            return not run.right
        case "unclear":
            return bool(run.wanted)
    return not run.wanted
