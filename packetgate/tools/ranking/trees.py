"""Evaluate boosted regression trees with numpy."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Trees:
    """Trees as arrays with one row per tree and one column per node or leaf, padded with empty columns.

    A row of features goes left at a node if the feature is at most the threshold; otherwise the leaves to the left of
    that node are excluded. The first leaf that no node excludes is the result, so that all nodes are tested at once.
    """

    feature: NDArray[np.int16]
    threshold: Floats
    left_of: NDArray[np.int32]
    """Leaves to the left of each node, as bits; the lowest bit is the leftmost leaf."""
    values: Floats
    """Values of the leaves, from left to right."""

    def scores(self, rows: Floats) -> Floats:
        """Return the sum over all trees for each row."""
        goes_right = rows.T[self.feature] > self.threshold[..., None]
        excluded = np.bitwise_or.reduce(np.where(goes_right, self.left_of[..., None], 0), axis=1)
        first = np.frexp((~excluded & (excluded + 1)).astype(np.float64))[1] - 1
        leaves = self.values[np.arange(len(self.values))[:, None], first]
        total: Floats = leaves.sum(0, dtype=np.float64).astype(np.float32)
        return total

    def arrays(self, prefix: str) -> dict[str, Any]:
        """Return the arrays for `from_arrays`."""
        return {f"{prefix}.{one.name}": getattr(self, one.name) for one in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Any, prefix: str) -> "Trees":
        """Return trees from `arrays`."""
        return cls(**{one.name: arrays[f"{prefix}.{one.name}"] for one in fields(cls)})
