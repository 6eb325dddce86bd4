"""Fit a logistic regression with a prior and with bounds on the signs of the weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Matrix = NDArray[np.float64]
Bounds = tuple[float | None, float | None]


@dataclass(frozen=True)
class Logistic:
    """Options of the fit. The first weight is the constant, which has no prior."""

    prior: Sequence[float]
    bounds: Sequence[Bounds]
    strength: float
    """Strength of the regularisation towards the prior, in examples."""

    def fitted(self, inputs: Matrix, right: Matrix) -> Matrix:
        """Return the fitted weights.

        Args:
            inputs: shape (examples, weights).
            right: shape (examples,), 0 or 1.
        """
        signs = 2 * right - 1
        scale = np.maximum(inputs.std(0), 0.1)
        scale[0] = 1.0

        def loss(weights: Matrix) -> float:
            distance = float((((weights - np.array(self.prior)) * scale)[1:] ** 2).sum())
            return float(np.logaddexp(0, -(inputs @ weights) * signs).sum()) + self.strength * distance

        found: Matrix = minimize(loss, np.array(self.prior), method="L-BFGS-B", bounds=self.bounds).x
        return found

    def left_out(self, inputs: Matrix, right: Matrix, groups: NDArray[np.str_]) -> Matrix:
        """Return the probability of each example, fitted on the other groups, or on all examples of a single group."""
        sure = np.zeros(len(right))
        for group in sorted(set(groups.tolist())):
            at = groups == group
            kept = ~at if not at.all() else at
            sure[at] = 1 / (1 + np.exp(-inputs[at] @ self.fitted(inputs[kept], right[kept])))
        return sure
