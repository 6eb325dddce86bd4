"""Boosted regression trees, evaluated with nothing but numpy."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Trees:
    """Trees as arrays of one row a tree and one column a node, or a leaf; columns that a tree lacks count nothing.

    A node sends a row to the left where the feature is at most the threshold. One whose threshold a row is above rules
    the leaves to its left out, wherever in the tree it stands, and the first leaf that none rules out is the row's. So
    no tree is walked: all nodes are asked at once.
    """

    feature: NDArray[np.int16]
    threshold: Floats
    left_of: NDArray[np.int32]
    """The leaves to the left of each node, as bits: the lowest for the leftmost leaf."""
    values: Floats
    """Of the leaves, from the leftmost on."""

    def scores(self, rows: Floats) -> Floats:
        """Return each row's sum over all trees."""
        to_right = rows.T[self.feature] > self.threshold[..., None]
        out = np.bitwise_or.reduce(np.where(to_right, self.left_of[..., None], 0), axis=1)
        first = np.frexp((~out & (out + 1)).astype(np.float64))[1] - 1
        leaves = self.values[np.arange(len(self.values))[:, None], first]
        total: Floats = leaves.sum(0, dtype=np.float64).astype(np.float32)
        return total

    def arrays(self, prefix: str) -> dict[str, Any]:
        """Return what `from_arrays` reads."""
        return {f"{prefix}.{one.name}": getattr(self, one.name) for one in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Any, prefix: str) -> "Trees":
        """Read what `arrays` returned."""
        return cls(**{one.name: arrays[f"{prefix}.{one.name}"] for one in fields(cls)})
