"""Boosted regression trees, evaluated with nothing but numpy."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_ARRAYS = ("feature", "threshold", "left", "right", "value")


@dataclass(frozen=True)
class Trees:
    """Trees as arrays of one row a tree and one column a node; a leaf is its own child."""

    feature: NDArray[np.int16]
    threshold: Floats
    left: NDArray[np.int16]
    right: NDArray[np.int16]
    value: Floats

    def scores(self, rows: Floats) -> Floats:
        """Return each row's sum over all trees: to the left where a feature is at most the threshold.

        A node whose threshold a row is above rules the leaves to its left out, wherever in the tree it stands; the
        first leaf that none rules out is the row's. So no tree is walked: all nodes are asked at once.
        """
        nodes, left_of, values = self._leaves
        to_right = rows.T[self.feature.ravel()[nodes]] > self.threshold.ravel()[nodes][..., None]
        out = np.bitwise_or.reduce(np.where(to_right, left_of[..., None], 0), axis=1)
        first = np.frexp((~out & (out + 1)).astype(np.float64))[1] - 1
        total: Floats = values[np.arange(len(values))[:, None], first].sum(0, dtype=np.float64).astype(np.float32)
        return total

    @cached_property
    def _leaves(self) -> tuple[NDArray[np.intp], NDArray[np.int64], Floats]:
        """Each tree's inner nodes, as places in all trees' arrays; the leaves to the left of each, as bits; and the
        value of each leaf, from the leftmost on."""
        trees, most = self.feature.shape
        wide = np.int32 if most < 60 else np.int64
        nodes, left_of = np.zeros((trees, most // 2), np.intp), np.zeros((trees, most // 2), wide)
        values = np.zeros((trees, most // 2 + 1), np.float32)
        for tree in range(trees):
            inner: list[tuple[int, int]] = []
            leaves: list[int] = []
            self._walk(tree, 0, inner, leaves)
            for at, (node, bits) in enumerate(inner):
                nodes[tree, at], left_of[tree, at] = tree * most + node, bits
            values[tree, : len(leaves)] = self.value[tree, leaves]
        return nodes, left_of, values

    def _walk(self, tree: int, node: int, inner: list[tuple[int, int]], leaves: list[int]) -> int:
        """Note a node and all below it; return its leaves as bits."""
        left, right = int(self.left[tree, node]), int(self.right[tree, node])
        if left == node:
            leaves.append(node)
            return 1 << len(leaves) - 1
        below = self._walk(tree, left, inner, leaves)
        inner.append((node, below))
        return below | self._walk(tree, right, inner, leaves)

    def arrays(self, prefix: str) -> dict[str, Any]:
        """Return what `from_arrays` reads."""
        return {f"{prefix}.{name}": getattr(self, name) for name in _ARRAYS}

    @classmethod
    def from_arrays(cls, arrays: Any, prefix: str) -> "Trees":
        """Read what `arrays` returned."""
        return cls(**{name: arrays[f"{prefix}.{name}"] for name in _ARRAYS})
