"""The learned scorer: small trees over `features`; the scores of one parameter's candidates are compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciders.values.features import NAMES, VERSION, Matrix
from tools.learned import json_of

TREES = Path(__file__).with_name("trees.json")


@dataclass(frozen=True)
class Model:
    """Trees, their nodes one after another; a child below zero is a leaf, by its complement."""

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float32]
    children: NDArray[np.int64]
    """Of each node: where to go at most the threshold, and above it."""
    leaves: NDArray[np.float32]
    depth: int

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Model":
        """Return the model of what is stored.

        Raises:
            ValueError: it is of other features than this version sees.
        """
        if stored["version"] != VERSION or tuple(stored["features"]) != NAMES:
            raise ValueError(f"{TREES.name} is of other features than these: train it anew")
        return cls(
            np.array(stored["roots"]),
            np.array(stored["feature"]),
            np.array(stored["threshold"], dtype=np.float32),
            np.array(stored["children"]),
            np.array(stored["leaves"], dtype=np.float32),
            int(stored["depth"]),
        )

    def scores(self, rows: Matrix) -> NDArray[np.float64]:
        """Return the score of each row: the higher above the others of the same parameter, the more probable."""
        at = np.broadcast_to(self.roots, (len(rows), len(self.roots))).copy()
        along = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            inner = np.maximum(at, 0)
            above = rows[along, self.feature[inner]] > self.threshold[inner]
            at = np.where(at >= 0, self.children[inner, above.astype(np.int64)], at)
        return np.asarray(self.leaves[~at].sum(axis=1), dtype=np.float64)


@cache
def model() -> Model:
    """Return the model that is shipped.

    Raises:
        WeightsError: its file is missing or broken.
    """
    return json_of(TREES, Model.of)
