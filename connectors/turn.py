"""Running one turn: the one function behind every connector."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from connectors.asking import Reply, Say, Turn
from graph.composition import Graph
from state import events
from state.context import RoutingContext
from state.errors import RequestError, SessionError
from state.packet import CognitionPacket, TurnInput
from state.request import check_request
from state.sections import Header, Reflection, check_version


@dataclass(frozen=True)
class StageStarted:
    """A stage has begun."""

    stage: str


@dataclass(frozen=True)
class StageFinished:
    """A stage has ended, with what it decided."""

    decision: Reflection


@dataclass(frozen=True)
class Asked:
    """The turn waits for the user."""

    question: dict[str, Any]
    packet: CognitionPacket


@dataclass(frozen=True)
class Finished:
    """The turn is over."""

    packet: CognitionPacket


TurnEvent = StageStarted | StageFinished | Asked | Finished


async def run_turn(graph: Graph, turn: Turn, session: str, context: RoutingContext) -> AsyncIterator[TurnEvent]:
    """Run a turn on a session, up to its answer or to a question.

    Raises:
        RequestError: the request cannot be used; the session stays as it was.
        PacketVersionError: the session was written by a newer Packetgate.
        SessionError: there is nothing to reply to, or to continue.
    """
    config: RunnableConfig = {"configurable": {"thread_id": session}}
    given = _input(turn, await graph.aget_state(config), session)
    stream = graph.astream(given, config, context=context, stream_mode="custom", durability="sync")
    async for event in stream:
        match event:
            case events.StageStarted(stage=stage):
                yield StageStarted(stage)
            case events.StageFinished(decisions=decisions):
                for decision in decisions:
                    yield StageFinished(decision)
    after = await graph.aget_state(config)
    packet = packet_of(after)
    question = pending_question(after)
    yield Asked(question, packet) if question is not None else Finished(packet)


def packet_of(state: StateSnapshot) -> CognitionPacket:
    """Return the packet in a thread's state."""
    return CognitionPacket.model_validate(
        {name: value for name, value in state.values.items() if name in CognitionPacket.model_fields}
    )


def pending_question(state: StateSnapshot) -> dict[str, Any] | None:
    """Return the question a thread waits with."""
    return next((dict(one.value) for one in state.interrupts if isinstance(one.value, dict)), None)


def _input(turn: Turn, state: StateSnapshot, session: str) -> Any:
    _check_readable(state)
    match turn:
        case Say():
            return TurnInput(messages=[HumanMessage(check_request(turn.text))], request=turn.request)
        case Reply():
            if pending_question(state) is None:
                raise SessionError(f"session {session!r} has no pending question: ask something with `packetgate ask`")
            if turn.value is None:
                raise RequestError("a reply must say something: yes, no, skip, your words, or a decision")
            return Command(resume=turn.value)
        case _:
            if not state.next:
                raise SessionError(f"session {session!r} has no unfinished turn: ask something with `packetgate ask`")
            return None


def _check_readable(state: StateSnapshot) -> None:
    header = state.values.get("header") if state.values else None
    version = header.version if isinstance(header, Header) else (header or {}).get("version", 0)
    check_version(version)
