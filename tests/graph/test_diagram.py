"""The graph as an SVG: every stage a box, every edge a line from one box to the other."""

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


def box_at(x: float, y: float, boxes: dict[str, dict[str, float]]) -> str:
    """Return whose border the point lies on."""
    (name,) = [
        name
        for name, box in boxes.items()
        if box["x"] <= x <= box["x"] + box["width"] and box["y"] <= y <= box["y"] + box["height"]
    ]
    return name


def test_every_stage_is_a_box_within_the_picture(picture: ElementTree.Element, boxes: dict[str, dict[str, float]]):
    assert set(boxes) == {name for edge in EDGES for name in edge}
    assert len(boxes) == 12
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    tops = [box["y"] for box in boxes.values()]
    assert all(0 < box["x"] < box["x"] + box["width"] < width for box in boxes.values())
    assert all(later - earlier > 40 for earlier, later in pairwise(tops))
    assert 0 < tops[0] < tops[-1] + 40 < height


def test_every_edge_leads_from_its_box_to_the_other(picture: ElementTree.Element, boxes: dict[str, dict[str, float]]):
    drawn = {}
    for line in picture.findall("svg:g/svg:path", NAMESPACE):
        numbers = [float(number) for number in re.findall(r"[\d.]+", line.get("d", ""))]
        start, end = numbers[:2], numbers[-2:] if len(numbers) > 3 else [numbers[0], numbers[-1]]
        drawn[box_at(*start, boxes), box_at(*end, boxes)] = line.get("stroke-dasharray") is not None
    assert drawn == EDGES
    assert len(EDGES) == 25


def test_curves_stay_within_the_picture(picture: ElementTree.Element):
    width = float(picture.get("width", 0))
    curves = [line.get("d", "") for line in picture.findall("svg:g/svg:path", NAMESPACE)]
    swings = [float(curve.split("C")[1].split()[0]) for curve in curves if "C" in curve]
    assert len(swings) == 16
    assert all(0 < far < width for far in swings)
