"""The graph in the form that a LangGraph server needs."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from itertools import chain
from typing import Any, Self, cast

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.graph import Graph
from langgraph.constants import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateUpdate

from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import PacketgateError
from packetgate.state.packet import CognitionPacket, TurnInput, check_update, request_in
from packetgate.state.request import TurnRequest, check_reply
from packetgate.tools.attached.parts import take_files
from packetgate.tools.text.result_store import ResultStore

KNOWN_AS = "langgraph_auth_user_id"
"""Where a server with an authentication of its own says who asks; no client can."""


class ServedGraph(CompiledStateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket]):
    """A compiled graph that checks what a server is sent before it is kept, and is drawn as it is built."""

    def __init__(self, *, kept: ResultStore | None = None, **parts: Any) -> None:
        """Take the parts of a graph: a server copies it by them."""
        super().__init__(**parts)
        self.kept = kept

    @classmethod
    def of(
        cls,
        graph: CompiledStateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket],
        kept: ResultStore | None = None,
    ) -> Self:
        """Return `graph` as one, which keeps there what users attach."""
        served = cls.__new__(cls)
        vars(served).update(vars(graph), kept=kept)
        return served

    async def astream(  # type: ignore[override]
        self, given: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncGenerator[Any]:
        """Run the graph. What a server runs without a thread has none to come back to, though it is given an id.

        Raises:
            PacketgateError: what the user is to read, as a ValueError as well: of others a server tells only the class.
        """
        where = _without_thread(config) if self.checkpointer is None else config
        context = options.get("context")
        if context is None or isinstance(context, dict):  # Studio shows every stage's reasons
            options["context"] = context = {"explain": True, **(context or {})}
        with _readable():
            routing_context(context)
            check_update(given.update if isinstance(given, Command) else _read_of(given))
            if isinstance(given, Command) and (given.resume is not None or not (given.update or given.goto)):
                check_reply(given.resume)
            given = _from_server(_read_of(given), (config or {}).get("configurable", {}).get(KNOWN_AS) or "")
            if isinstance(given, dict):  # refused later, it would have taken the place of what waits for an answer
                given = await asyncio.to_thread(self._in_text, given, where)
                request_in(given["messages"])
            async with aclosing(cast("AsyncGenerator[Any]", super().astream(given, where, **options))) as parts:
                async for part in parts:
                    yield part

    def _in_text(self, given: dict[str, Any], where: RunnableConfig | None) -> dict[str, Any]:
        """Return what a turn is given, what is attached to its message kept for the thread. Blocking."""
        thread = (where or {}).get("configurable", {}).get("thread_id", "")
        said = given.get("messages", [])
        read = convert_to_messages(said if isinstance(said, list) else [said])
        messages, files = take_files(read, self.kept, thread)
        return {**given, "messages": messages, "request": given["request"].with_files(files)}

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Change the state.

        Raises:
            RequestError: as a ValueError as well: a change cannot be taken.
        """
        with _readable():
            for update in chain.from_iterable(supersteps):
                check_update(update.values)
        return await super().abulk_update_state(config, supersteps)

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the graph to be drawn."""
        return without_handlers(super().get_graph(config, xray=xray))

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the graph to be drawn, as `langgraph dev` asks for it."""
        return without_handlers(await super().aget_graph(config, xray=xray))


def without_handlers(drawn: Graph) -> Graph:
    """Take the error handlers out of a drawing: the stages to which no edge leads."""
    reached = {START, *(edge.target for edge in drawn.edges)}
    for handler in [node for name, node in drawn.nodes.items() if name not in reached]:
        drawn.remove_node(handler)
    return drawn


def _without_thread(config: RunnableConfig | None) -> RunnableConfig:
    configurable = (config or {}).get("configurable", {})
    left = {name: value for name, value in configurable.items() if name != "thread_id"}
    return {**(config or {}), "configurable": left}


def _from_server(given: Any, person: str) -> Any:
    """Return what a turn is given as it came in here, and from whom, whatever it says of that itself."""
    if not isinstance(given, dict):
        return given
    request = TurnRequest.model_validate(given.get("request") or {})
    return {**given, "request": request.changed(origin="server", person=person or request.person)}


def _read_of(given: Any) -> Any:
    """Return what is read of a turn's input. Front ends send more: that is left alone."""
    return {name: given[name] for name in TurnInput.model_fields if name in given} if isinstance(given, dict) else given


@contextmanager
def _readable() -> Iterator[None]:
    """Raise our errors so that a server tells what they say."""
    try:
        yield
    except PacketgateError as error:
        raise type(type(error).__name__, (type(error), ValueError), {})(str(error)) from error
