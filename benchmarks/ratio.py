"""One cost beside its base: how both are measured in turns, and how what came of it is printed."""

import argparse
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Side = Callable[[], Awaitable[float]]
"""Does its work once, and returns how long that took, in milliseconds."""

LEAST = 3
"""Rounds that are measured, however long they take."""


@dataclass(frozen=True)
class Ratio:
    """Interleaved measurements of a cost and of its base, in milliseconds, pair by pair."""

    name: str
    cost: Sequence[float]
    base: Sequence[float]
    goal: float | None = None
    """The ratio that is not to be passed; None: it is only told."""
    beside: str = "the base"
    """What the base is."""
    notes: Mapping[str, float] = field(default_factory=dict)
    """What else was measured, in milliseconds."""

    @property
    def median(self) -> float:
        """The median of the pairs' ratios."""
        return statistics.median(self._pairs)

    @property
    def spread(self) -> tuple[float, float]:
        """The quartiles of the pairs' ratios; with two pairs or fewer, the smallest and the largest."""
        if len(self._pairs) < 3:
            return min(self._pairs), max(self._pairs)
        first, _, third = statistics.quantiles(self._pairs, n=4)
        return first, third

    @property
    def _pairs(self) -> list[float]:
        return [cost / base for cost, base in zip(self.cost, self.base, strict=True)]

    def as_json(self) -> str:
        """Return one line for scripts."""
        return json.dumps(
            {
                "name": self.name,
                "beside": self.beside,
                "ratio": round(self.median, 3),
                "spread": [round(one, 3) for one in self.spread],
                "goal": self.goal,
                "runs": len(self.cost),
                "cost_ms": round(statistics.median(self.cost), 2),
                "base_ms": round(statistics.median(self.base), 2),
                "notes_ms": {name: round(value, 2) for name, value in self.notes.items()},
            }
        )

    def as_text(self) -> str:
        """Return a few lines for people."""
        low, high = self.spread
        goal = "" if self.goal is None else f", goal {self.goal}"
        lines = [
            f"{self.name}: {self.median:.2f} times {self.beside} ({low:.2f} to {high:.2f}){goal}",
            f"  cost {statistics.median(self.cost):,.1f} ms, base {statistics.median(self.base):,.1f} ms,"
            f" median of {len(self.cost)} interleaved runs",
        ]
        notes = ", ".join(f"{name} {value:,.1f}" for name, value in self.notes.items())
        return "\n".join([*lines, *([f"  ms: {notes}"] if notes else [])])


async def interleaved(
    sides: Mapping[str, Side], runs: int, warm_up: int = 0, patience_s: float | None = None
) -> dict[str, list[float]]:
    """Let all sides do their work in turns, every other round in the opposite order, and return what each took.

    What takes longer than `patience_s` ends early, after at least a few rounds.
    """
    took: dict[str, list[float]] = {name: [] for name in sides}
    started = time.perf_counter()
    for number in range(-warm_up, runs):
        for name in [*sides] if number % 2 else reversed([*sides]):
            ms = await sides[name]()
            if number >= 0:
                took[name].append(ms)
        if patience_s is not None and number >= LEAST - 1 and time.perf_counter() - started > patience_s:
            break
    return took


def arguments(about: str, runs: int, rows: Iterable[str] = ()) -> argparse.Namespace:
    """Read the command line: `--runs`, `--json`, and `--only` where there are rows to choose from."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs, help="pairs to measure (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON, one line a ratio")
    if rows := list(rows):
        parser.add_argument("--only", action="append", choices=rows, metavar="ROW", help=f"one of: {'; '.join(rows)}")
    return parser.parse_args()


def show(ratios: Iterable[Ratio], *, as_json: bool) -> None:
    """Print ratios as they come."""
    for ratio in ratios:
        print(ratio.as_json() if as_json else ratio.as_text(), flush=True)
