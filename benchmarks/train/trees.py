"""What LightGBM fitted, as the product evaluates it."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tools.ranking.trees import Trees


def trees_of(model: Mapping[str, Any]) -> Trees:
    """Return the trees of what `Booster.dump_model` gives."""
    trees = [list(_nodes(one["tree_structure"])) for one in model["tree_info"]]
    shape = (len(trees), max(map(len, trees)))
    feature, left, right = (np.zeros(shape, np.int16) for _ in range(3))
    threshold, value = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for row, nodes in enumerate(trees):
        place = {id(node): at for at, node in enumerate(nodes)}
        for at, node in enumerate(nodes):
            if "leaf_value" in node:
                left[row, at] = right[row, at] = at
                value[row, at] = node["leaf_value"]
            else:
                feature[row, at], threshold[row, at] = node["split_feature"], node["threshold"]
                left[row, at], right[row, at] = place[id(node["left_child"])], place[id(node["right_child"])]
    return Trees(feature, threshold, left, right, value)


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in ("left_child", "right_child"):
        if child in node:
            yield from _nodes(node[child])
