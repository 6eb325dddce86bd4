"""Draw Mermaid graphs and state diagrams as SVG: nodes in a column, and one line for all edges to a node."""

import re
from collections.abc import Iterable, Sequence
from html import escape

NODE = re.compile(r"^\s*(\w+)[(\[]", re.MULTILINE)
EDGE = re.compile(r"^\s*(\S+) -(\.?)->? ([^\s;]+)", re.MULTILINE)
DASHED = ' class="dashed"'
"""An edge that is one of several routes."""
OUTER = "[*]"
"""The start and the end in a state diagram."""
ROW, WIDTH, HEIGHT, LANE = 50, 150, 30, 15
"""In pixels: from a node to the next, a node's box, and from a line to the next."""

Edge = tuple[int, int]


def graph_svg(mermaid: str) -> str:
    """Return the graph as an `svg` element without blank lines, which takes its colours from `site.css`."""
    found = [
        ("__start__" if start == OUTER else start, "__end__" if end == OUTER else end)
        for start, _, end in EDGE.findall(mermaid)
    ]
    names = list(
        dict.fromkeys(re.findall(NODE, mermaid) or [node for edge in zip(*found, strict=True) for node in edge])
    )
    names.sort(key=lambda name: (name == "__end__") - (name == "__start__"))
    places = {name: place for place, name in enumerate(names)}
    edges = [(places[start], places[end]) for start, end in found]
    dashed = {edge for edge, (_, dot, _) in zip(edges, EDGE.findall(mermaid), strict=True) if dot}
    down = _lanes([edge for edge in edges if edge[1] > edge[0] + 1])
    up = _lanes([edge for edge in edges if edge[1] < edge[0]])
    left, right = (LANE * (1 + len(lanes)) for lanes in (up, down))
    width, height = left + WIDTH + right, ROW * len(names) + HEIGHT - ROW + 4
    lines = {edge: _next(edge, left + WIDTH // 2) for edge in edges if edge[1] == edge[0] + 1}
    for lanes, side, out in ((up, left, -1), (down, left + WIDTH, 1)):
        lines |= {edge: _line(edge, side, side + out * LANE * n, out) for n, own in enumerate(lanes, 1) for edge in own}
    paths = [f'<path d="{line}"{DASHED * (edge in dashed)}/>' for edge, line in lines.items()]
    boxes = [
        _box(label + " \N{CLOCKWISE OPEN CIRCLE ARROW}" * ((place, place) in edges), left, place)
        for place, label in enumerate(names)
    ]
    marker = (
        '<marker id="tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="8" markerHeight="8" orient="auto" '
        'markerUnits="userSpaceOnUse">'
    )
    return (
        f'<svg class="graph" width="{1.1 * width:.0f}" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="Nodes and the edges between them">'
        f'<defs>{marker}<path d="M0 0L6 3L0 6z"/></marker></defs>'
        f'<g class="edges">{"".join(paths)}</g>{"".join(boxes)}</svg>'
    )


def _lanes(edges: Iterable[Edge]) -> list[list[Edge]]:
    """Return the edges of each lane: edges to one node share a lane, and no two lines of a lane overlap."""
    groups: dict[int, list[Edge]] = {}
    for edge in edges:
        groups.setdefault(edge[1], []).append(edge)
    lanes: list[list[Edge]] = []
    for group in sorted(groups.values(), key=lambda group: _span(group)[1] - _span(group)[0]):
        low, high = _span(group)
        free = (lane for lane in lanes if high < _span(lane)[0] or low > _span(lane)[1])
        lane = next(free, None)
        lanes.append(group) if lane is None else lane.extend(group)
    return lanes


def _span(edges: Sequence[Edge]) -> tuple[int, int]:
    places = [place for edge in edges for place in edge]
    return min(places), max(places)


def _middle(place: int) -> int:
    return ROW * place + HEIGHT // 2 + 2


def _line(edge: Edge, side: int, lane: int, out: int) -> str:
    """Return the path of a line from the lower half of a node's side, along its lane, to the upper half of another."""
    start, end = _middle(edge[0]) + 7 * out, _middle(edge[1]) - 7 * out
    turn = 5 if end > start else -5
    return (
        f"M{side} {start}H{lane - 5 * out}Q{lane} {start} {lane} {start + turn}"
        f"V{end - turn}Q{lane} {end} {lane - 5 * out} {end}H{side}"
    )


def _next(edge: Edge, centre: int) -> str:
    return f"M{centre} {_middle(edge[0]) + HEIGHT // 2}V{_middle(edge[1]) - HEIGHT // 2}"


def _box(label: str, left: int, place: int) -> str:
    outer = ' class="outer"' if label.startswith("__") else ""
    return (
        f'<g{outer}><rect x="{left}" y="{_middle(place) - HEIGHT // 2}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{left + WIDTH // 2}" y="{_middle(place) + 4}">{escape(label.strip("_"))}</text></g>'
    )
