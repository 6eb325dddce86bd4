"""Run one turn: the input of a session, and the function that all connectors use."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Annotated, Any, ClassVar

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.types import Command
from pydantic import Field, TypeAdapter, ValidationError

from packetgate.connectors.sessions import AnswerPiece, RunInput, Sessions, SessionState, already_answered_error
from packetgate.gate.replies import asked_calls, read_reply
from packetgate.graph.building import LAST_STAGE
from packetgate.nodes.put_back import STILL_WAITS
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError, SessionError
from packetgate.state.events import StageEvent, StageFinished
from packetgate.state.packet import CognitionPacket, TurnInput
from packetgate.state.request import TurnRequest, check_reply, check_request
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.attached.parts import REQUEST_WITHOUT_TEXT, Part


@dataclass(frozen=True)
class Say:
    """A new message from the user."""

    text: str
    request: TurnRequest = field(default_factory=TurnRequest)
    question_id: str | None = None
    """The question that was last shown to the user, in case the text answers it; see `Reply`."""
    history: tuple[BaseMessage, ...] = ()
    """Earlier messages, for a new session."""
    follows: str = ""
    """Id of the packet that the message follows. If the session has a newer packet, the turn raises SessionError."""
    files: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Reply:
    """The user's reply to a question: text, a decision, or `{"decisions": [...]}`."""

    value: Any
    question_id: str | None = None
    """The question's id or a prefix; None means the open question; an empty string means that no question was shown."""


@dataclass(frozen=True)
class Continue:
    """Continue an interrupted turn."""


UserInput = Say | Reply | Continue

NOT_SHOWN = "your reply was for another question, or this question was not shown yet: answer this question now"
RESUMING = "The previous turn was interrupted during a write and is being resumed. Send your message again afterwards."


@dataclass(frozen=True)
class Waiting:
    """Another turn of the session runs, here or in another process. The new turn waits for it."""


@dataclass(frozen=True)
class Resuming:
    """The previous turn continues before a new turn, because it was interrupted during a write."""


@dataclass(frozen=True)
class Asked:
    """The turn waits for the user."""

    question: dict[str, Any]
    packet: CognitionPacket
    is_known: bool = False
    """Whether the question was already repeated after an earlier request, so that a person need not see it again.

    A reply must then name the question that was shown last, and the question is shown again before it is decided.
    """


@dataclass(frozen=True)
class SideTurnFinished:
    """A new request was answered while a question was open; the next event repeats the question."""

    packet: CognitionPacket


@dataclass(frozen=True)
class Finished:
    """The turn has ended."""

    packet: CognitionPacket

    @property
    def exit_status(self) -> int:
        """The exit status: 2 after an invalid command; 1 if a call of the last pass failed or may have failed."""
        if self.packet.content.typed_command is not None and self.packet.content.typed_command.is_error:
            return 2
        routing = self.packet.tool_routing
        last = (routing.calls or routing.past_calls[-1:]) if routing else ()
        return int(any(call.status in _FAILED for call in last))


@dataclass(frozen=True)
class Recorded:
    """The answer is recorded, and the process that asked has not reported a result yet."""

    packet: CognitionPacket
    """The current state of the turn: its call has not ended."""
    channel: str
    """The channel of that process, such as `proxy`."""
    exit_status: ClassVar[int] = 0


_FAILED = frozenset({ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN})
TurnEvent = Waiting | Resuming | StageEvent | AnswerPiece | SideTurnFinished | Asked | Finished | Recorded


async def run_turn(
    sessions: Sessions, turn: UserInput, session: str, context: RoutingContext
) -> AsyncGenerator[TurnEvent]:
    """Run a turn on a session up to its answer or a question. Closing the generator stops the turn.

    If another turn runs on the session, in any process, the new turn waits for it. A turn that was interrupted
    during a write continues first, so that nothing is done twice.

    Raises:
        RequestError: the request is invalid; the session is unchanged.
        PacketError: the stored session state is not a valid packet of this version.
        SessionError: there is nothing to reply to or to continue, or the turn was stopped elsewhere.
        ConfigError: the server cannot be used.
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
            raise already_answered_error(session)
        turn = _resolved(turn, before)
        if isinstance(turn, Say) and before.is_unfinished and await sessions.has_started_write(before.packet):
            turn = Continue()
            yield Resuming()
        if isinstance(turn, Reply) and before.question is not None and not is_answer_to(turn, before.question):
            yield Asked({**before.question, "problem": NOT_SHOWN}, before.packet)
            return
        if isinstance(turn, Say) and turn.follows and turn.follows != before.packet.header.packet_id:
            raise SessionError("another turn ended after this message was written: send the message again")
        graph_input, decided, ended_id = run_input(turn, before, session), False, ""
        async with aclosing(sessions.stream(graph_input, session, context)) as stream:
            async for event in stream:
                if isinstance(event, StageFinished):
                    decided = decided or bool(event.decisions)
                    ended_id = event.packet_id if event.stage == LAST_STAGE else ended_id
                yield event
        after = await sessions.state(session)
        if sessions.note_end is not None:
            await sessions.note_end(session, after.question, context)
        aside = await _ended_packet(sessions, session, ended_id) if ended_id and after.question is not None else None
    if isinstance(turn, Reply) and not decided and after.question is None:
        raise already_answered_error(session)
    if after.is_unfinished:
        raise SessionError(
            f"the turn of session {session!r} was stopped before its end; "
            f"`packetgate answer --session {session}` continues it",
            Code.TURN_INTERRUPTED,
        )
    if aside is not None:
        yield SideTurnFinished(aside)
    yield _end(after, before, aside)


def _end(after: SessionState, before: SessionState, aside: CognitionPacket | None) -> Finished | Asked:
    if after.question is None:
        return Finished(after.packet)
    was_repeated = before.question is not None and before.question.get("problem") == STILL_WAITS
    return Asked(after.question, after.packet, is_known=aside is not None and was_repeated)


def remember_words(question: Mapping[str, Any]) -> list[str]:
    """Return the answers to a question that may be remembered for each of its calls."""
    calls = question.get("action_requests") or []
    words = ("session", "always", "trust", "never")
    return [word for word in words if calls and all(word in call.get("remember", ()) for call in calls)]


_EDIT_WORD = re.compile(r"\s*edit\s*:?\s*(?=[\[{])", re.IGNORECASE)
_EDIT = TypeAdapter[Any](dict[str, Any] | Annotated[list[dict[str, Any] | str], Field(min_length=1)])


def words_reply(words: str, question: dict[str, Any]) -> str | dict[str, Any]:
    """Return the reply of a message: its words; or after the word `edit`, the decisions with other arguments.

    The decisions are a JSON object of arguments, or for several calls a list of such objects and of words. Other
    arguments keep their values.

    Raises:
        RequestError: the text after the word has another form.
    """
    word = _EDIT_WORD.match(words)
    if word is None or question.get("kind") == "question":
        return words
    text = words[word.end() :]
    try:
        edit = _EDIT.validate_json(text)
    except ValidationError as error:
        raise RequestError(
            'an edit is a JSON object of arguments, or a list of such objects and words such as "yes", not '
            f"{text[:60]}; nothing was run, and the question is still open"
        ) from error
    current = [request["args"] for request in question.get("action_requests") or ()]
    parts = edit if isinstance(edit, list) else [edit]
    decisions = [
        {"type": "edit", "args": {"args": {**before, **part}}} if isinstance(part, dict) else part
        for part, before in zip(parts, chain(current, repeat({})), strict=False)
    ]
    return {"decisions": decisions}


def _resolved(turn: UserInput, state: SessionState) -> UserInput:
    """Return a message that decides the open question as a reply, and a reply to a closed question as a new request.

    A message with only a decision never becomes a request.
    """
    question = state.question
    if question is None:
        return turn

    def decides(text: str) -> bool:
        return read_reply(text, asked_calls(question)) is not None

    match turn:
        case Say(text=text, question_id=str() as shown) if not turn.files and not turn.request.attachments:
            is_of_tool = state.packet.governance.question is None  # which any text answers
            return Reply(text, shown) if is_of_tool or decides(text) else turn
        case Reply(value=str() as text, question_id=shown) if shown and not is_answer_to(turn, question):
            header = state.packet.header
            request = TurnRequest(
                origin=header.origin, person=header.person, switch_hints=header.switch_hints, is_new=True
            )
            return turn if decides(text) else Say(text, request)
    return turn


def is_answer_to(reply: Reply, question: dict[str, Any]) -> bool:
    """Whether a reply is for this question."""
    prefix = reply.question_id
    return prefix is None or (bool(prefix) and str(question.get("question_id", "")).startswith(prefix))


async def _ended_packet(sessions: Sessions, session: str, packet_id: str) -> CognitionPacket | None:
    async with aclosing(sessions.history(session)) as states:
        async for state in states:
            packet = SessionState.from_snapshot(state).packet
            if packet.header.packet_id == packet_id and packet.governance.question is None:
                return packet
    return None


def run_input(turn: UserInput, state: SessionState, session: str) -> RunInput:
    """Return the graph's input. Raise SessionError if there is nothing to reply to or to continue."""
    match turn:
        case Say():
            text = check_request(turn.text if turn.text.strip() or not turn.files else REQUEST_WITHOUT_TEXT)
            message = HumanMessage([{"type": "text", "text": text}, *turn.files] if turn.files else text)
            return TurnInput(messages=[*turn.history, message], request=turn.request)
        case Reply():
            if state.question is None:
                raise SessionError(f"session {session!r} has no pending question", Code.QUESTION_NOT_OPEN)
            return Command(resume={state.interrupt_id: check_reply(turn.value)})
        case _:
            if not state.is_unfinished and state.question is None:
                raise SessionError(f"session {session!r} has no unfinished turn", Code.NOTHING_TO_CONTINUE)
            return None
