"""Measure a cost and its base alternately, and print their ratios."""

import argparse
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Side = Callable[[], Awaitable[float]]
"""Does its work once, and returns the duration in milliseconds."""

LEAST = 3
"""Minimum number of rounds, even if the rounds are slow."""


@dataclass(frozen=True)
class Ratio:
    """Interleaved measurements of a cost and its base, in milliseconds, pair by pair."""

    name: str
    cost: Sequence[float]
    base: Sequence[float]
    goal: float | None = None
    """Maximum ratio; None: no goal."""
    beside: str = "the base"
    """Name of the base."""
    notes: Mapping[str, float] = field(default_factory=dict)
    """Other measured durations in milliseconds, by name."""

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
        """Return the result as one line of JSON."""
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
        """Return the result as a few lines of text."""
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
    """Run all sides in each round, in alternating order, and return the durations of each side.

    After `patience_s` the measurement ends early, but not before `LEAST` rounds.
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
    """Return the command line's options: `--runs`, `--json`, and `--only` if there are rows to choose from."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=runs, help="number of pairs (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per ratio")
    if rows := list(rows):
        parser.add_argument("--only", action="append", choices=rows, metavar="ROW", help=f"one of: {'; '.join(rows)}")
    return parser.parse_args()


def show(ratios: Iterable[Ratio], *, as_json: bool) -> None:
    """Print each ratio as soon as it is measured."""
    for ratio in ratios:
        print(ratio.as_json() if as_json else ratio.as_text(), flush=True)
