"""Boosted regression trees, evaluated with nothing but numpy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Trees:
    """Trees as arrays of one row a tree and one column a node; a leaf is its own child."""

    feature: NDArray[np.int16]
    threshold: Floats
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    value: Floats
    depth: int

    def scores(self, rows: Floats) -> Floats:
        """Return each row's sum over all trees: to the left where a feature is at most the threshold."""
        trees = np.arange(len(self.feature))[None, :]
        node = np.zeros((len(rows), len(self.feature)), np.int16)
        each = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            to_left = rows[each, self.feature[trees, node]] <= self.threshold[trees, node]
            node = np.where(to_left, self.left[trees, node], self.right[trees, node])
        total: Floats = self.value[trees, node].sum(1, dtype=np.float64).astype(np.float32)
        return total

    def arrays(self, prefix: str) -> dict[str, Any]:
        """Return what `from_arrays` reads."""
        named = {name: getattr(self, name) for name in ("feature", "threshold", "left", "right", "value")}
        return {f"{prefix}.{name}": array for name, array in named.items()} | {f"{prefix}.depth": np.int16(self.depth)}

    @classmethod
    def from_arrays(cls, arrays: Any, prefix: str) -> "Trees":
        """Read what `arrays` returned."""
        named = {name: arrays[f"{prefix}.{name}"] for name in ("feature", "threshold", "left", "right", "value")}
        return cls(**named, depth=int(arrays[f"{prefix}.depth"]))
