"""Convert trees of LightGBM to the form that Packetgate evaluates."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from packetgate.reflex.meaning.space import Trees

MOST_LEAVES = 31
"""Maximum number of leaves of a tree; each leaf is a bit."""

Node = tuple[int, float, int]
"""A node: its feature, its threshold, and the leaves to its left as bits."""


def trees_of(model: Mapping[str, Any]) -> Trees:
    """Return the trees of a result of `Booster.dump_model`.

    Raises:
        ValueError: a tree has more leaves than bits.
    """
    trees: list[tuple[list[Node], list[float]]] = []
    for one in model["tree_info"]:
        nodes: list[Node] = []
        leaves: list[float] = []
        _walk(one["tree_structure"], nodes, leaves)
        trees.append((nodes, leaves))
    most = max(len(leaves) for _, leaves in trees)
    if most > MOST_LEAVES:
        raise ValueError(f"a tree has {most} leaves, more than {MOST_LEAVES}")
    shape = (len(trees), max(1, most - 1))
    feature, left_of = np.zeros(shape, np.int16), np.zeros(shape, np.int32)
    threshold, values = np.zeros(shape, np.float32), np.zeros((len(trees), most), np.float32)
    for row, (nodes, leaves) in enumerate(trees):
        values[row, : len(leaves)] = leaves
        for at, node in enumerate(nodes):
            feature[row, at], threshold[row, at], left_of[row, at] = node
    return Trees(feature, threshold, left_of, values)


def _walk(node: Mapping[str, Any], nodes: list[Node], leaves: list[float]) -> int:
    """Collect a node and all nodes below it, and return its leaves as bits."""
    if "leaf_value" in node:
        leaves.append(node["leaf_value"])
        return 1 << len(leaves) - 1
    below = _walk(node["left_child"], nodes, leaves)
    nodes.append((node["split_feature"], node["threshold"], below))
    return below | _walk(node["right_child"], nodes, leaves)
