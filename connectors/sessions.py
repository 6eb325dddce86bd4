"""Conversations and the graph behind them: in this process, or on a running LangGraph-API server."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import Command, StateSnapshot
from pydantic import ValidationError

from graph.building import LAST
from state.context import RoutingContext
from state.events import StageEvent, read_event
from state.packet import CognitionPacket, TurnInput
from state.sections import Header, check_version

Given = TurnInput | Command[Any] | None
"""What a run starts from: something new, a reply, or, to go on with a turn that was stopped, nothing."""


@dataclass(frozen=True)
class AnswerPiece:
    """A piece of the answer, as it is written."""

    text: str


@dataclass(frozen=True)
class SessionState:
    """Where a conversation stands."""

    packet: CognitionPacket
    """The last turn's; a blank one where there was none."""
    question: dict[str, Any] | None
    """What the last turn waits with."""
    is_unfinished: bool
    """Whether a turn was begun, and neither ended nor asks."""

    @classmethod
    def of(cls, snapshot: StateSnapshot) -> "SessionState":
        """Read a thread's state.

        Raises:
            PacketVersionError: a newer Packetgate wrote it.
        """
        values = snapshot.values or {}
        header = values.get("header")
        check_version(header.version if isinstance(header, Header) else (header or {}).get("version", 0))
        question = next((dict(one.value) for one in snapshot.interrupts if isinstance(one.value, dict)), None)
        fields = {name: value for name, value in values.items() if name in CognitionPacket.model_fields}
        return cls(CognitionPacket.model_validate(fields), question, bool(snapshot.next) and question is None)


class Sessions:
    """The conversations that a graph of this process keeps, by name."""

    def __init__(self, graph: PregelProtocol[Any, Any, Any, Any]) -> None:
        self.graph = graph

    def config(self, session: str) -> RunnableConfig:
        """Return the configuration by which LangGraph finds a session's thread."""
        return {"configurable": {"thread_id": session}}

    async def state(self, session: str) -> SessionState:
        """Return where a session stands.

        Raises:
            PacketVersionError: a newer Packetgate wrote it.
        """
        return SessionState.of(await self.graph.aget_state(self.config(session)))

    async def stream(
        self, given: Given, session: str, context: RoutingContext
    ) -> AsyncGenerator[StageEvent | AnswerPiece]:
        """Run the graph on a session, and tell what happens. Closing the stream stops the run."""
        async with aclosing(self._parts(given, session, context)) as parts:
            async for part in parts:
                told = _told(part)
                if told is not None:
                    yield told

    def _parts(
        self, given: object, session: str, context: RoutingContext | dict[str, Any], **options: Any
    ) -> AsyncGenerator[Any]:
        how: dict[str, Any] = {"stream_mode": ["custom", "messages"], "durability": "sync", "version": "v2", **options}
        parts = self.graph.astream(given, self.config(session), context=context, **how)
        return cast("AsyncGenerator[Any]", parts)

    async def forget(self, session: str) -> None:
        """Remove all that is kept of a session's conversation."""
        checkpointer = getattr(self.graph, "checkpointer", None)
        if checkpointer is not None:
            await checkpointer.adelete_thread(session)


def _told(part: Any) -> StageEvent | AnswerPiece | None:
    """Return what a part of LangGraph's stream tells, None for what is not for the user."""
    if part["type"] == "custom":
        try:
            return read_event(part["data"])
        except ValidationError:
            return None  # a newer server may tell more than is understood here
    message, metadata = part["data"]
    if metadata.get("langgraph_node") != LAST:
        return None
    text = message.text if isinstance(message, BaseMessage) else AIMessageChunk(content=message["content"]).text
    return AnswerPiece(text) if text else None
