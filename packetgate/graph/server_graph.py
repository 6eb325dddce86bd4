"""The graph for LangGraph servers: checks client input before it is stored."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from itertools import chain
from typing import Any, Self, cast

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateUpdate

from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.errors import PacketgateError, RequestError
from packetgate.state.packet import CognitionPacket, TurnInput, check_update, request_in
from packetgate.state.private_names import CHECKPOINTER, is_nested
from packetgate.state.request import TurnRequest, check_reply
from packetgate.tools.attached.parts import extract_files
from packetgate.tools.text.result_store import ResultStore

USER_ID = "langgraph_auth_user_id"
"""Key under which a server with authentication puts the user's id; clients cannot set it."""


class ServerGraph(CompiledStateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket]):
    """A compiled graph that validates a server's input. As a node of another graph, it is an ordinary graph."""

    def __init__(
        self, *, results: ResultStore | None = None, settings: RoutingContext | None = None, **parts: Any
    ) -> None:
        """Create a graph from another graph's attributes, because servers copy graphs this way."""
        super().__init__(**parts)
        self.results, self.settings = results, settings

    @classmethod
    def from_graph(
        cls,
        graph: CompiledStateGraph[CognitionPacket, RoutingContext, TurnInput, CognitionPacket],
        results: ResultStore | None = None,
        settings: RoutingContext | None = None,
    ) -> Self:
        """Return a server graph that stores attached files in `results`; a run's own settings override `settings`."""
        copy = cls.__new__(cls)
        vars(copy).update(vars(graph), results=results, settings=settings)
        return copy

    def stream(self, turn_input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:  # type: ignore[override]
        """Run the graph from sync code."""
        return super().stream(turn_input, self._root_config(config), **options)

    def _root_config(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the configuration of a run; a run without a parent and a checkpointer stores nothing."""
        configurable = dict((config or {}).get("configurable", {}))
        if self.checkpointer is True:
            configurable.setdefault(CHECKPOINTER, None)
        return {**(config or {}), "configurable": configurable}

    async def astream(  # type: ignore[override]
        self, turn_input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncGenerator[Any]:
        """Run the graph.

        Raises:
            PacketgateError: also a ValueError, because a server shows only the class of other errors.
        """
        config = self._root_config(config)
        configurable = config["configurable"]
        with nullcontext() if is_nested(configurable) else _raise_value_errors():
            if not is_nested(configurable):
                if configurable.get(CHECKPOINTER, self.checkpointer) is None:
                    # a server gives an id to runs without a thread; they cannot be resumed
                    configurable.pop("thread_id", None)
                of_run = routing_context(options.get("context"))
                if self.settings is not None:
                    given = {name: getattr(of_run, name) for name in of_run.model_fields_set}
                    options["context"] = self.settings.model_copy(update=given)
                turn_input = await self._checked(turn_input, configurable)
            async with aclosing(cast("AsyncGenerator[Any]", super().astream(turn_input, config, **options))) as parts:
                async for part in parts:
                    yield part

    async def _checked(self, turn_input: Any, configurable: Mapping[str, Any]) -> Any:
        """Return a client's input with its files stored, or raise RequestError."""
        if isinstance(turn_input, Command):
            if turn_input.goto:
                raise RequestError("goto is not supported: send `messages`, or resume with a reply")
            check_update(turn_input.update)
            if sections := {*(turn_input.update or ())} - {"messages"}:  # who may start runs need not be an operator
                names = ", ".join(sorted(map(repr, sections)))
                raise RequestError(f"a command cannot update {names}: send `messages`, or resume with a reply")
            if turn_input.resume is not None or not turn_input.update:
                check_reply(turn_input.resume)
            return turn_input
        if not isinstance(turn_input, dict):
            check_update(turn_input)
            return turn_input
        turn_input = {name: turn_input[name] for name in TurnInput.model_fields if name in turn_input}
        check_update(turn_input)
        request = TurnRequest.model_validate(turn_input.get("request") or {})
        messages = turn_input.get("messages", [])
        messages = convert_to_messages(messages if isinstance(messages, list) else [messages])
        thread = configurable.get("thread_id", "")
        messages, files = await asyncio.to_thread(extract_files, messages, self.results, thread)
        request_in(messages)  # an invalid request must not replace the open question
        person = configurable.get(USER_ID) or request.person
        request = request.changed(origin="server", person=person).with_files(files)
        return {"messages": messages, "request": request}

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Check and apply changes of the state.

        Raises:
            RequestError: a change is invalid. The error is also a ValueError.
        """
        with _raise_value_errors():
            for update in chain.from_iterable(supersteps):
                check_update(update.values)
        return await super().abulk_update_state(config, supersteps)


@contextmanager
def _raise_value_errors() -> Iterator[None]:
    try:
        yield
    except PacketgateError as error:
        raise type(type(error).__name__, (type(error), ValueError), {})(str(error), code=error.code) from error
