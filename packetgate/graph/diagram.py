"""The graph as Mermaid text or SVG."""

import sys
from html import escape

from langchain_core.runnables.graph import Edge, Graph

from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.building import build_graph
from packetgate.graph.server_graph import without_handlers
from packetgate.tools.servers.hub import McpHub

WIDTH, ROW, BOX, HEIGHT = 560, 58, 170, 32
"""Picture width, row height, box width and box height, in pixels."""
LANE = 20
"""Width of a curve for every row that it passes."""

_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" \
font-family="system-ui, sans-serif" font-size="13" text-anchor="middle">
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">\
<path d="M0 0 8 4 0 8z" fill="#8a86ad"/></marker></defs>
<g fill="none" stroke="#8a86ad" stroke-width="1.4" marker-end="url(#tip)">
{edges}
</g>
{nodes}
</svg>
"""


def mermaid() -> str:
    """Return the diagram as Mermaid text."""
    return _drawn().draw_mermaid()


def svg() -> str:
    """Return the diagram as SVG: edges forward on the right, backward on the left; conditional edges are dashed."""
    graph = _drawn()
    rows = {name: row for row, name in enumerate(graph.nodes)}
    return _FRAME.format(
        width=WIDTH,
        height=ROW * len(rows),
        edges="\n".join(_line(edge, rows[edge.source], rows[edge.target]) for edge in graph.edges),
        nodes="\n".join(_box(name, row) for name, row in rows.items()),
    )


def _drawn() -> Graph:
    return without_handlers(build_graph(reflex_deciders(), McpHub([])).compile().get_graph())


def _line(edge: Edge, start: int, end: int) -> str:
    dashes = ' stroke-dasharray="5 4"' if edge.conditional else ""
    if end == start + 1:
        return f'<path d="M{WIDTH // 2} {_middle(start) + HEIGHT // 2}V{_middle(end) - HEIGHT // 2}"{dashes}/>'
    side = 1 if end > start else -1
    edge_of_box = WIDTH // 2 + side * BOX // 2
    far = edge_of_box + side * (20 + LANE * abs(end - start))
    leaves, arrives = _middle(start) + 5 * side, _middle(end) - 5 * side
    return f'<path d="M{edge_of_box} {leaves}C{far} {leaves} {far} {arrives} {edge_of_box} {arrives}"{dashes}/>'


def _box(name: str, row: int) -> str:
    left, top = (WIDTH - BOX) // 2, _middle(row) - HEIGHT // 2
    end = name.startswith("__")
    return (
        f'<rect x="{left}" y="{top}" width="{BOX}" height="{HEIGHT}" rx="{HEIGHT // 2 if end else 6}" '
        f'fill="{"#bfb6fc" if end else "#f2f0ff"}" stroke="#8a86ad"/>'
        f'<text x="{WIDTH // 2}" y="{_middle(row) + 4}" fill="#1f1d2e">{escape(name.strip("_"))}</text>'
    )


def _middle(row: int) -> int:
    return ROW * row + ROW // 2


if __name__ == "__main__":
    sys.stdout.write(mermaid())
