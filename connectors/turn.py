"""Running one turn: the one function behind every connector."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from connectors.asking import Reply, Say, Turn
from connectors.sessions import AnswerPiece, Given, Sessions, SessionState
from state import events
from state.context import RoutingContext
from state.errors import RequestError, SessionError
from state.packet import CognitionPacket, TurnInput
from state.request import check_request
from state.sections import Reflection
from state.transitions import ToolExecutionStatus


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

    @property
    def status(self) -> int:
        """The exit status that tells it: 1 where a call of the last pass failed, or may have."""
        routing = self.packet.tool_routing
        last = (routing.calls or routing.past_calls[-1:]) if routing else ()
        return int(any(call.status in _FAILED for call in last))


_FAILED = frozenset({ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN})


TurnEvent = StageStarted | StageFinished | AnswerPiece | Asked | Finished


async def run_turn(sessions: Sessions, turn: Turn, session: str, context: RoutingContext) -> AsyncGenerator[TurnEvent]:
    """Run a turn on a session, up to its answer or to a question. Closing it stops the turn.

    A turn waits for the one that runs on its session.

    Raises:
        RequestError: the request cannot be used; the session stays as it was.
        PacketError: what is kept of the session is no packet, or a newer Packetgate's.
        SessionError: there is nothing to reply to, or to continue; or somebody else stopped the turn.
        ConfigError: the server that is to run it cannot be used.
    """
    async with sessions.turn(session):
        given = _input(turn, await sessions.state(session), session)
        async with aclosing(sessions.stream(given, session, context)) as stream:
            async for event in stream:
                match event:
                    case AnswerPiece():
                        yield event
                    case events.StageStarted(stage=stage):
                        yield StageStarted(stage)
                    case events.StageFinished(decisions=decisions):
                        for decision in decisions:
                            yield StageFinished(decision)
        after = await sessions.state(session)
    if after.is_unfinished:
        raise SessionError(
            f"the turn of session {session!r} was stopped before its end: "
            f"`packetgate answer --session {session}` goes on with it"
        )
    yield Finished(after.packet) if after.question is None else Asked(after.question, after.packet)


def _input(turn: Turn, state: SessionState, session: str) -> Given:
    match turn:
        case Say():
            return TurnInput(messages=[HumanMessage(check_request(turn.text))], request=turn.request)
        case Reply():
            if state.question is None:
                raise SessionError(f"session {session!r} has no pending question: ask something with `packetgate ask`")
            if turn.value is None:
                raise RequestError("a reply must say something: yes, no, skip, your words, or a decision")
            return Command(resume=turn.value)
        case _:
            if not state.is_unfinished and state.question is None:
                raise SessionError(f"session {session!r} has no unfinished turn: ask something with `packetgate ask`")
            return None
