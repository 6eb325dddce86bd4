"""The graph as Mermaid text."""

import sys

from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.building import build_graph
from packetgate.toolsets.servers.hub import McpHub


def mermaid() -> str:
    """Return the diagram as Mermaid text."""
    return build_graph(reflex_deciders(), McpHub([])).compile().get_graph().draw_mermaid()


if __name__ == "__main__":
    sys.stdout.write(mermaid())
