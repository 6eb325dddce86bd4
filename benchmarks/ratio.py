"""One cost beside its base, and how both are printed."""

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ratio:
    """Interleaved measurements of a cost and of its base, in milliseconds, pair by pair."""

    name: str
    cost: Sequence[float]
    base: Sequence[float]
    goal: float
    """The ratio to stay below."""
    notes: dict[str, float] = field(default_factory=dict)
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
        lines = [
            f"{self.name}: {self.median:.2f} times the base ({low:.2f} to {high:.2f}), goal {self.goal}",
            f"  cost {statistics.median(self.cost):,.1f} ms, base {statistics.median(self.base):,.1f} ms,"
            f" median of {len(self.cost)} interleaved runs",
        ]
        return "\n".join([*lines, *(f"  {name}: {value:,.1f} ms" for name, value in self.notes.items())])


def arguments(about: str, runs: int) -> argparse.Namespace:
    """Read the command line: `--runs` and `--json`."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--runs", type=int, default=runs, help="pairs to measure (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON, one line a ratio")
    return parser.parse_args()


def show(ratios: Sequence[Ratio], *, as_json: bool) -> None:
    """Print ratios."""
    for ratio in ratios:
        print(ratio.as_json() if as_json else ratio.as_text())
