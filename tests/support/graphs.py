"""Sessions on the real graph with in-process servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from support.confirmed_reads import confirming_preferences
from support.notebook import Notebook

from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Finished, Reply, Say, TurnEvent, run_turn
from packetgate.deciders.protocols import Deciders
from packetgate.gate.journal import Journal
from packetgate.graph.building import build_graph
from packetgate.graph.checkpoints import PacketSerializer
from packetgate.state.context import RoutingContext
from packetgate.state.errors import SessionError
from packetgate.state.events import StageFinished
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.server import Server


@dataclass
class Session:
    """A conversation on one thread."""

    graph: CompiledStateGraph[Any, Any, Any, Any]
    context: RoutingContext
    name: str = "session"
    hub: McpHub | None = None

    async def events(self, turn: Say | Reply) -> list[TurnEvent]:
        """Run a turn and return its events."""
        return [event async for event in run_turn(Sessions(self.graph), turn, self.name, self.context)]

    async def say(self, text: str, **context: Any) -> CognitionPacket:
        """Run a turn to its answer, optionally with other settings."""
        self.context = self.context.model_copy(update=context)
        return _finished(await self.events(Say(text)))

    async def reply(self, value: Any) -> CognitionPacket:
        """Reply, and run the turn to its answer."""
        return _finished(await self.events(Reply(value)))

    async def ask(self, text: str) -> Asked:
        """Run a turn to its question."""
        return _asked(await self.events(Say(text)))

    async def ask_again(self, value: Any) -> Asked:
        """Reply, and run the turn to its next question."""
        return _asked(await self.events(Reply(value)))

    async def until_stopped(self, turn: Say | Reply) -> CognitionPacket:
        """Run a turn up to the stage before which the graph stops."""
        with pytest.raises(SessionError, match="stopped"):
            await self.events(turn)
        return (await Sessions(self.graph).state(self.name)).packet

    async def packet(self) -> CognitionPacket:
        """Return the packet of the last turn."""
        values = (await self.graph.aget_state(self.config)).values
        return CognitionPacket.model_validate({k: v for k, v in values.items() if k in CognitionPacket.model_fields})

    async def steps(self) -> list[str]:
        """Return the stages of the last turn, in order."""
        return [entry.step for entry in (await self.packet()).reasoning.reflection_log]

    async def stream(self, text: str = "Hello") -> "Streamed":
        """Run a turn, and return three of LangGraph's streams, which a front end reads concurrently."""
        given, modes = TurnInput(messages=[HumanMessage(text)]), ["messages", "custom", "updates"]
        events = self.graph.astream(given, self.config, context=self.context, stream_mode=modes)
        seen = [(mode, event) async for mode, event in events]
        messages = [event[0] for mode, event in seen if mode == "messages" and isinstance(event[0], AIMessage)]
        return Streamed(messages, [mode for mode, _ in seen], await self.packet())

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.name}}


@dataclass
class Streamed:
    """The stream content of a turn."""

    messages: list[AIMessage]
    """The chunks in order of arrival."""
    modes: list[str]
    packet: CognitionPacket

    @property
    def chunks(self) -> list[str]:
        return [message.text for message in self.messages if message.text]

    @property
    def shown(self) -> dict[str | None, str]:
        """The text of each message, by id."""
        texts: dict[str | None, str] = {}
        for message in self.messages:
            if message.text:
                texts[message.id] = texts.get(message.id, "") + message.text
        return texts


@asynccontextmanager
async def session(
    deciders: Deciders,
    *servers: Notebook | Server,
    checkpointer: BaseCheckpointSaver[str] | None = None,
    interrupt_before: list[str] | None = None,
    journal: Journal | None = None,
    preferences: Preferences | None = None,
    store: BaseStore | None = None,
    **context: Any,
) -> AsyncIterator[Session]:
    """Open a session on the graph. `context` contains fields of `RoutingContext`. With a store, the session learns."""
    saver = checkpointer or InMemorySaver(serde=PacketSerializer())
    async with McpHub(
        [_connection(server) for server in servers], preferences=confirming_preferences(preferences)
    ) as hub:
        graph = build_graph(deciders, hub, journal=journal).compile(
            checkpointer=saver, interrupt_before=interrupt_before, store=store
        )
        yield Session(graph, RoutingContext(**context), hub=hub)


async def run_once(deciders: Deciders, text: str, *servers: Notebook | Server, **context: Any) -> CognitionPacket:
    """Run one turn without a checkpointer, so that no question can be asked."""
    async with McpHub([_connection(server) for server in servers], preferences=confirming_preferences()) as hub:
        graph = build_graph(deciders, hub).compile()
        given = TurnInput(messages=[HumanMessage(text)])
        return CognitionPacket.model_validate(await graph.ainvoke(given, context=RoutingContext(**context)))


def stages(events: list[TurnEvent]) -> list[str]:
    """Return the stages that made a decision, in order."""
    return [one.step for event in events if isinstance(event, StageFinished) for one in event.decisions]


def _connection(server: Notebook | Server) -> Server:
    return server.connection() if isinstance(server, Notebook) else server


def _finished(events: list[TurnEvent]) -> CognitionPacket:
    last = events[-1]
    assert isinstance(last, Finished), last
    return last.packet


def _asked(events: list[TurnEvent]) -> Asked:
    last = events[-1]
    assert isinstance(last, Asked), last
    return last
