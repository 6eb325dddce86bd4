"""The graph in the form that a LangGraph server needs."""

from typing import Any, Self

from langgraph.graph.state import CompiledStateGraph

from state.context import RoutingContext
from state.packet import CognitionPacket, TurnInput


class ServedGraph(CompiledStateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket]):
    """A compiled graph that may still restore its own types after a server has copied it.

    A server copies the graph for every run, to put its checkpointer in. LangGraph's copy forgets which types the
    state's schemas allow, and under `LANGGRAPH_STRICT_MSGPACK` the copy would restore none of them.
    """

    @classmethod
    def of(cls, graph: CompiledStateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket]) -> Self:
        """Return `graph` as one."""
        served = cls(**{name: value for name, value in vars(graph).items() if name != "__orig_class__"})
        served._serde_allowlist = graph._serde_allowlist
        return served

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        """Return a copy with some attributes replaced."""
        copied = super().copy(update)
        copied._serde_allowlist = self._serde_allowlist
        return copied
