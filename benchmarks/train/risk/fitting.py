"""Logistic regression with a Gaussian prior, by L-BFGS in plain numpy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
_MEMORY = 12
_MAX_STEPS = 300


@dataclass(frozen=True)
class Sparse:
    """Rows of features, few of each row not zero."""

    columns: NDArray[np.int64]
    values: Vector
    rows: NDArray[np.int64]
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: Sequence[dict[str, float]], vocabulary: dict[str, int]) -> "Sparse":
        """Return the rows with the features that the vocabulary knows."""
        known = [[(vocabulary[name], value) for name, value in row.items() if name in vocabulary] for row in rows]
        flat = [pair for row in known for pair in row]
        return cls(
            columns=np.array([column for column, _ in flat], dtype=np.int64),
            values=np.array([value for _, value in flat], dtype=np.float64),
            rows=np.repeat(np.arange(len(rows)), [len(row) for row in known]),
            shape=(len(rows), len(vocabulary)),
        )

    def times(self, weights: Vector) -> Vector:
        """Return each row's weighted sum."""
        return np.bincount(self.rows, self.values * weights[self.columns], self.shape[0]).astype(np.float64)

    def transposed_times(self, weights: Vector) -> Vector:
        """Return each column's sum, its rows weighted."""
        return np.bincount(self.columns, self.values * weights[self.rows], self.shape[1]).astype(np.float64)


def fit(features: Sparse, labels: Vector, importance: Vector, *, prior: float) -> tuple[Vector, float]:
    """Return the coefficients and the bias that are likeliest, given a prior of that precision on each coefficient."""
    signs = 2 * labels - 1

    def cost(point: Vector) -> tuple[float, Vector]:
        margins = signs * (features.times(point[:-1]) + point[-1])
        slope = -importance * signs / (1 + np.exp(np.clip(margins, -500, 500)))
        penalty = np.append(prior * point[:-1], 0.01 * point[-1])
        value = float(importance @ np.logaddexp(0, -margins) + penalty @ point / 2)
        return value, np.append(features.transposed_times(slope), slope.sum()) + penalty

    point = _minimised(cost, np.zeros(features.shape[1] + 1))
    return point[:-1], float(point[-1])


def _minimised(cost: Callable[[Vector], tuple[float, Vector]], point: Vector) -> Vector:
    value, slope = cost(point)
    steps: list[tuple[Vector, Vector]] = []
    for _ in range(_MAX_STEPS):
        direction = -_scaled(slope, steps)
        size, fall = 1.0 if steps else 1.0 / max(1.0, float(np.abs(slope).sum())), float(slope @ direction)
        while True:
            moved = point + size * direction
            new, new_slope = cost(moved)
            if new <= value + 1e-4 * size * fall or size < 1e-12:
                break
            size /= 2
        if (moved - point) @ (new_slope - slope) > 1e-12:
            steps = [*steps[-_MEMORY + 1 :], (moved - point, new_slope - slope)]
        done = abs(value - new) <= 1e-7 * max(1.0, abs(value))
        point, value, slope = moved, new, new_slope
        if done:
            break
    return point


def _scaled(slope: Vector, steps: list[tuple[Vector, Vector]]) -> Vector:
    """Return the slope times what the last steps tell of the inverse curvature."""
    result, parts = slope.copy(), []
    for moved, changed in reversed(steps):
        part = float(moved @ result / (moved @ changed))
        result -= part * changed
        parts.append(part)
    if steps:
        moved, changed = steps[-1]
        result *= float(moved @ changed / (changed @ changed))
    for (moved, changed), part in zip(steps, reversed(parts), strict=True):
        result += (part - float(changed @ result / (moved @ changed))) * moved
    return result
