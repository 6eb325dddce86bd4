"""The graph in the form that a LangGraph server needs."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.graph import Graph
from langgraph.graph.state import CompiledStateGraph

from state.context import RoutingContext
from state.errors import PacketgateError
from state.packet import CognitionPacket, TurnInput


class ServedGraph(CompiledStateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket]):
    """A compiled graph that may still restore its own types after a server has copied it, and is drawn as it is built.

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

    async def astream(  # type: ignore[override]
        self, given: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncGenerator[Any]:
        """Run the graph. What a server runs without a thread has none to come back to, though it is given an id.

        Raises:
            PacketgateError: what the user is to read, as a ValueError as well: of others a server tells only the class.
        """
        where = _without_thread(config) if self.checkpointer is None else config
        try:
            async with aclosing(cast("AsyncGenerator[Any]", super().astream(given, where, **options))) as parts:
                async for part in parts:
                    yield part
        except PacketgateError as error:
            raise type(type(error).__name__, (type(error), ValueError), {})(str(error)) from error

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the graph to be drawn."""
        return without_handlers(super().get_graph(config, xray=xray))

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the graph to be drawn, as `langgraph dev` asks for it."""
        return without_handlers(await super().aget_graph(config, xray=xray))


def without_handlers(drawn: Graph) -> Graph:
    """Take the error handlers out of a drawing: they stand in for their stages, and no edge leads to them."""
    for handler in [name for name in drawn.nodes if name.startswith("__error_handler__")]:
        drawn.remove_node(drawn.nodes[handler])
    return drawn


def _without_thread(config: RunnableConfig | None) -> RunnableConfig:
    configurable = (config or {}).get("configurable", {})
    left = {name: value for name, value in configurable.items() if name != "thread_id"}
    return {**(config or {}), "configurable": left}
