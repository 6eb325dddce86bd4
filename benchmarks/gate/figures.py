"""Figures on recorded runs: how far confidence can be believed, and what a threshold lets through."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.gate.runs import Run
from packetgate.state.context import RoutingContext

THRESHOLD = RoutingContext().confidence_threshold
THRESHOLDS = tuple(step / 20 for step in range(21))

Judge = Literal["selection", "review"]
"""Whose confidence."""


@dataclass(frozen=True)
class Point:
    """What a threshold lets through."""

    threshold: float
    coverage: float
    """The share of all requests whose call passes, from 0 to 1."""
    precision: float | None
    """The share of those that chose a right tool; None where none passes."""


def judged(runs: Sequence[Run], judge: Judge) -> list[tuple[float, bool]]:
    """Return how sure the judge was of each run that made calls, and whether they were right."""
    return [(run.confidence(judge), run.right) for run in runs if run.chosen]


def sweep(runs: Sequence[Run], judge: Judge = "review", thresholds: Sequence[float] = THRESHOLDS) -> list[Point]:
    """Return what each threshold would let through."""
    points = []
    for threshold in thresholds:
        passed = [run for run in runs if run.chosen and run.confidence(judge) >= threshold]
        precision = sum(run.right for run in passed) / len(passed) if passed else None
        points.append(Point(threshold, len(passed) / len(runs) if runs else 0.0, precision))
    return points


def outcomes(runs: Sequence[Run]) -> dict[str, tuple[int, int]]:
    """Return how many runs ended how at the default threshold: (rightly, wrongly) by outcome.

    It is right to pass a right tool, to hold back a wrong one, to call nothing where no tool fits, and to ask for what
    a tool needs where one does.
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
