"""The graph as SVG: each stage is a box, and each edge a line between two boxes."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from packetgate.graph.diagram import mermaid, svg

NAMESPACE = {"svg": "http://www.w3.org/2000/svg"}
EDGES = {
    (source.strip("_"), target.strip("_")): arrow == "-.->"
    for source, arrow, target in re.findall(r"^\t(\w+) (-->|-\.->) (\w+);$", mermaid(), re.MULTILINE)
}
"""Whether an edge is one of several ways, by the two stages."""


@pytest.fixture(scope="module")
def picture() -> ElementTree.Element:
    return ElementTree.fromstring(svg())


@pytest.fixture(scope="module")
def boxes(picture: ElementTree.Element) -> dict[str, dict[str, float]]:
    names = [text.text or "" for text in picture.findall("svg:text", NAMESPACE)]
    found = [{key: float(box.get(key, 0)) for key in ("x", "y", "width", "height")}
             for box in picture.findall("svg:rect", NAMESPACE)]  # fmt: skip
    return dict(zip(names, found, strict=True))


def test_every_stage_is_a_box_inside_the_picture(picture: ElementTree.Element, boxes: dict[str, dict[str, float]]):
    assert set(boxes) == {name for edge in EDGES for name in edge}
    assert len(boxes) == 12
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    tops = [box["y"] for box in boxes.values()]
    assert all(0 < box["x"] < box["x"] + box["width"] < width for box in boxes.values())
    assert all(later - earlier > 40 for earlier, later in pairwise(tops))
    assert 0 < tops[0] < tops[-1] + 40 < height
