"""The graph as a picture, drawn from the graph itself."""

import sys

from deciders.choosing import reflex_deciders
from graph.building import build_graph
from tools.hub import McpHub


def mermaid() -> str:
    """Return the diagram as Mermaid text, without the error handlers, which no edge leads to."""
    drawn = build_graph(reflex_deciders(), McpHub([])).compile().get_graph()
    for handler in [name for name in drawn.nodes if name.startswith("__error_handler__")]:
        drawn.remove_node(drawn.nodes[handler])
    return drawn.draw_mermaid()


if __name__ == "__main__":
    sys.stdout.write(mermaid())
