"""Run one turn: what a user can say to a session, and the one function behind every connector."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.errors import UnknownInterruptError
from langgraph.types import Command

from packetgate.connectors.sessions import AnswerPiece, Given, Sessions, SessionState
from packetgate.graph.building import LAST_STAGE
from packetgate.state.context import RoutingContext
from packetgate.state.errors import SessionError
from packetgate.state.events import StageEvent, StageFinished
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.request import TurnRequest, check_reply, check_request
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.replies import decides
from packetgate.tools.attached.parts import SEE_ATTACHED, Part


@dataclass(frozen=True)
class Say:
    """A new message from the user."""

    text: str
    request: TurnRequest = field(default_factory=TurnRequest)
    question_id: str | None = None
    """The question that was last shown to the user, in case the message is only yes or no; see `Reply`."""
    history: tuple[BaseMessage, ...] = ()
    """Earlier messages from elsewhere, for a new session."""
    follows: str = ""
    """The packet that it follows; if the session has a newer one, nothing is done."""
    files: tuple[Part, ...] = ()
    """Attachments, as parts of a message."""


@dataclass(frozen=True)
class Reply:
    """The user's reply to a pending question: words, a decision, or `{"decisions": [...]}`."""

    value: Any
    question_id: str | None = None
    """The id of its question, or a prefix; None means the open question, empty that none was shown."""


@dataclass(frozen=True)
class Continue:
    """Continue an interrupted turn."""


Turn = Say | Reply | Continue


NOT_SHOWN = "your reply was for another question, or this one was not shown yet: please answer it now"


@dataclass(frozen=True)
class Waiting:
    """Another turn of the session runs, here or in another process; this one waits for it."""


GONE_ON_FIRST = (
    "The previous turn was interrupted during a write and is being resumed. Send your message again afterwards."
)


@dataclass(frozen=True)
class GoingOn:
    """The previous turn continues instead: it was interrupted when a change may have begun."""


@dataclass(frozen=True)
class Answering:
    """A reply is passed to the waiting turn."""

    question: dict[str, Any]
    value: Any


@dataclass(frozen=True)
class Asked:
    """The turn waits for the user."""

    question: dict[str, Any]
    packet: CognitionPacket


@dataclass(frozen=True)
class Aside:
    """A turn ended that ran while a question was open; the question is asked again."""

    packet: CognitionPacket


@dataclass(frozen=True)
class Finished:
    """The turn has ended."""

    packet: CognitionPacket

    @property
    def status(self) -> int:
        """The exit status: 1 if a call of the last pass failed or may have failed."""
        routing = self.packet.tool_routing
        last = (routing.calls or routing.past_calls[-1:]) if routing else ()
        return int(any(call.status in _FAILED for call in last))


_FAILED = frozenset({ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN})


TurnEvent = Waiting | GoingOn | StageEvent | AnswerPiece | Answering | Aside | Asked | Finished


async def run_turn(sessions: Sessions, turn: Turn, session: str, context: RoutingContext) -> AsyncGenerator[TurnEvent]:
    """Run a turn on a session up to its answer or a question. Closing this stops the turn.

    A turn waits for the one that runs on its session, in whatever process, as long as that takes, and says so. Nothing
    new is begun over one that was stopped in the middle of a change: that one goes on, so that nothing is done twice.

    Raises:
        RequestError: the request cannot be used; the session stays as it was.
        PacketError: the stored session state is not a valid packet, or of a newer Packetgate.
        SessionError: there is nothing to reply to, or to continue; or somebody else stopped the turn.
        ConfigError: the server that is to run it cannot be used.
    """
    queue = sessions.queue(session)
    waits = queue.locked()
    if waits:
        yield Waiting()
    async with AsyncExitStack() as held:
        await held.enter_async_context(queue)
        if not waits and await sessions.is_leased(session):
            waits = True
            yield Waiting()
        await held.enter_async_context(sessions.lease(session))
        before = await sessions.state(session)
        if waits and isinstance(turn, Reply) and before.question is None:
            raise _answered_elsewhere(session)
        turn = _as_reply(turn, before)
        if isinstance(turn, Say) and before.is_unfinished and await sessions.has_begun(before.packet):
            turn = Continue()
            yield GoingOn()
        turn = _as_request(turn, before)
        if isinstance(turn, Reply) and before.question is not None:
            if not _is_meant(turn, before.question):
                yield Asked({**before.question, "problem": NOT_SHOWN}, before.packet)
                return
            yield Answering(before.question, turn.value)
        if isinstance(turn, Say) and turn.follows and turn.follows != before.packet.header.packet_id:
            raise SessionError("the conversation has continued meanwhile: send your message again")
        given, decided, ended = _input(turn, before, session), False, ""
        async with aclosing(_answered_once(sessions.stream(given, session, context), session)) as stream:
            async for event in stream:
                if isinstance(event, StageFinished):
                    decided = decided or bool(event.decisions)
                    ended = event.packet_id if event.stage == LAST_STAGE else ended
                yield event
        after = await sessions.state(session)
        aside = await _kept(sessions, session, ended) if ended and after.question is not None else None
    if isinstance(turn, Reply) and not decided and after.question is None:
        raise _answered_elsewhere(session)
    if after.is_unfinished:
        raise SessionError(
            f"the turn of session {session!r} was stopped before its end: "
            f"`packetgate answer --session {session}` goes on with it"
        )
    if aside is not None:
        yield Aside(aside)
    yield Finished(after.packet) if after.question is None else Asked(after.question, after.packet)


def _as_reply(turn: Turn, state: SessionState) -> Turn:
    if not isinstance(turn, Say) or state.question is None or turn.question_id is None:
        return turn
    if turn.files or turn.request.attachments:
        return turn
    return Reply(turn.text, turn.question_id) if decides(turn.text, state.question) else turn


def _as_request(turn: Turn, state: SessionState) -> Turn:
    """Return undecided words to a question that is not open any more as a new request."""
    if not isinstance(turn, Reply) or state.question is None or _is_meant(turn, state.question):
        return turn
    if not isinstance(turn.value, str) or not turn.question_id or decides(turn.value, state.question):
        return turn
    header = state.packet.header
    request = TurnRequest(origin=header.origin, person=header.person, way_out=header.way_out, is_new=True)
    return Say(turn.value, request)


def _is_meant(reply: Reply, question: dict[str, Any]) -> bool:
    meant, asked = reply.question_id, str(question.get("question_id", ""))
    return meant is None or (bool(meant) and asked.startswith(meant))


async def _kept(sessions: Sessions, session: str, packet_id: str) -> CognitionPacket | None:
    async with aclosing(sessions.history(session)) as states:
        async for state in states:
            found = SessionState.of(state).packet
            if found.header.packet_id == packet_id and found.governance.question is None:
                return found
    return None


async def _answered_once(
    stream: AsyncGenerator[StageEvent | AnswerPiece], session: str
) -> AsyncGenerator[StageEvent | AnswerPiece]:
    try:
        async with aclosing(stream) as events:
            async for event in events:
                yield event
    except UnknownInterruptError as error:
        raise _answered_elsewhere(session) from error


def _answered_elsewhere(session: str) -> SessionError:
    return SessionError(
        f"the question of session {session!r} was answered elsewhere meanwhile: this answer is not used"
    )


def _input(turn: Turn, state: SessionState, session: str) -> Given:
    match turn:
        case Say():
            words = check_request(turn.text if turn.text.strip() or not turn.files else SEE_ATTACHED)
            said = HumanMessage([{"type": "text", "text": words}, *turn.files] if turn.files else words)
            return TurnInput(messages=[*turn.history, said], request=turn.request)
        case Reply():
            if state.question is None:
                raise SessionError(f"session {session!r} has no pending question: ask something with `packetgate ask`")
            return Command(resume={state.interrupt_id: check_reply(turn.value)})
        case _:
            if not state.is_unfinished and state.question is None:
                raise SessionError(f"session {session!r} has no unfinished turn: ask something with `packetgate ask`")
            return None
