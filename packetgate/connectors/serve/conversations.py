"""Run a request as a turn of its session, and render the answer or question as text."""

import re
from collections.abc import AsyncGenerator, Container
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from packetgate.connectors import rendering
from packetgate.connectors.serve.answer_limit import AnswerLimit
from packetgate.connectors.serve.protocol import AnswerEnd, HistoryMessage
from packetgate.connectors.serve.threads import ConversationOwner, History, ThreadPoint, Threads, until_last_answer
from packetgate.connectors.sessions import AnswerPiece, Sessions, SessionState, ShownText
from packetgate.connectors.turn import (
    Asked,
    Continue,
    Finished,
    Reply,
    Say,
    SideTurnFinished,
    UserInput,
    Waiting,
    remember_words,
    run_turn,
    words_reply,
)
from packetgate.gate.replies import read_reply
from packetgate.models.stripping import strip_markup
from packetgate.state.base import TokenUsage, new_id
from packetgate.state.channels import BY_COMMAND, SwitchHints
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, RequestError, SessionError
from packetgate.state.events import StageFinished, StageStarted, StageStopped
from packetgate.state.packet import CLIENT_SUPPLIED, CognitionPacket
from packetgate.state.printing import fenced
from packetgate.state.request import MAX_REQUEST_CHARS, TurnRequest
from packetgate.state.routing import Risk
from packetgate.tools.attached.parts import Part

SERVE_CHANNEL = "serve"
SWITCHES = {Risk.WRITE: "--allow-writes", Risk.EXECUTE: "--allow-commands"}
_SWITCH_HINT = (
    "whoever runs this server can switch them on: `packetgate serve --allow-{0}`, or `allow_{0} = true` under "
    "`[serve.clients.NAME]` in packetgate.toml"
)
SERVE_SWITCH_HINTS = SwitchHints(
    write=_SWITCH_HINT.format("writes"), execute=_SWITCH_HINT.format("commands"), **BY_COMMAND
)
WITHDRAWN = "\n\n[the above is withdrawn; this is the answer:]\n\n"
DECIDED_ELSEWHERE = frozenset({Code.QUESTION_NOT_OPEN, Code.NOTHING_TO_CONTINUE})
"""Codes of a reply whose question was decided, or whose turn ended, while the reply waited."""
ID_DIGITS = 16
"""Number of random digits of a question's id at the end of its message. Nobody can guess the id."""

_MARK = re.compile(rf"\(question [0-9a-f]{{{ID_DIGITS}}}\)\s*$")


@dataclass(frozen=True)
class IncomingRequest:
    """A request: the conversation's owner and history, the new message, and the client's rights."""

    owner: ConversationOwner
    history: tuple[HistoryMessage, ...]
    message: HistoryMessage
    words: str
    """The text of the new message, without markers for its files."""
    files: tuple[Part, ...]
    rights: RoutingContext
    limit: AnswerLimit
    """Ends the answer; a question is shown whole."""


Piece = str | None | AnswerEnd
"""A piece of the answer; None while the turn continues without new text; the end."""


class ChatConversations:
    """Runs the turns of all clients' conversations."""

    def __init__(self, sessions: Sessions) -> None:
        if sessions.store is None:
            raise ConfigError("the sessions have no store: conversations need a graph that is compiled with a store")
        self._sessions = sessions
        self._threads = Threads(sessions.store)

    async def answer(self, request: IncomingRequest) -> AsyncGenerator[Piece]:
        """Run the turn of a request and yield its answer. Raise InputError if the request cannot be used.

        Several requests may send the same reply concurrently: the first one runs, and all receive its answer.
        """
        for is_retry in (False, True):
            point = await self._threads.find(request.owner, request.history)
            state = await self._sessions.state(point.session) if point else None
            if point and state and _is_decided(point, state) and _is_reply(point, request.words):
                yield request.limit.close(_answer_text(state.packet))
                yield AnswerEnd(TokenUsage(), request.limit.is_cut)
                return
            session, turn = await self._turn(request, point, state)
            try:
                async for piece in self._answer_pieces(request, session, turn):
                    yield piece
            except SessionError as error:
                if is_retry or isinstance(turn, Say) or error.code not in DECIDED_ELSEWHERE:
                    raise
                continue
            if point and isinstance(turn, Reply):
                await self._threads.record_reply(request.owner, request.history, point, request.words, accepted=True)
            return

    async def _turn(
        self, request: IncomingRequest, point: ThreadPoint | None, state: SessionState | None
    ) -> tuple[str, UserInput]:
        turn = await self._continued_turn(request, point, state) if point and state else None
        if point and turn:
            return point.session, turn
        answered = until_last_answer(request.history)
        if answered and is_question_message(answered[-1].text) and read_reply(request.words) is not None:
            raise RequestError(
                "the question is no longer open in this conversation, and nothing was run: send the request again",
                Code.QUESTION_NOT_OPEN,
            )
        messages = (*request.history, request.message)
        for session in await self._threads.begun_sessions(request.owner, messages):
            if await self._was_stopped_during_write(session):
                return session, Continue()
        session = f"{SERVE_CHANNEL}-{new_id()}"
        await self._threads.record_begun_session(request.owner, messages, session)
        own_indexes = await self._threads.own_message_indexes(request.owner, request.history)
        return session, self._new_turn(request, _as_messages(request.history, own_indexes))

    async def _continued_turn(
        self, request: IncomingRequest, point: ThreadPoint, state: SessionState
    ) -> UserInput | None:
        """Return the turn that continues the session of `point`; None if the request cannot continue it."""
        packet = state.packet
        if point.question_id:
            if state.question is not None:
                return await self._reply_turn(request, point, state)
            is_stopped = state.is_unfinished and packet.header.packet_id == point.packet_id
            return Continue() if is_stopped and point.reply == request.words else None
        if await self._is_busy(point.session):
            return None
        if packet.header.packet_id == point.packet_id and not state.is_unfinished:
            added = request.history[len(until_last_answer(request.history)) :]
            return self._new_turn(request, _as_messages(added), follows=point.packet_id)
        is_stopped = state.is_unfinished and packet.header.parent_packet_id == point.packet_id
        is_same = packet.content.original_prompt == request.words.strip()
        return Continue() if is_stopped and (is_same or await self._sessions.has_started_write(packet)) else None

    async def _reply_turn(self, request: IncomingRequest, point: ThreadPoint, state: SessionState) -> Reply:
        if not state.still_allows_calls(request.rights):
            raise RequestError(
                "the pending call is no longer allowed, and was not run: it needs --allow-writes or --allow-commands",
                Code.PERMISSION_WITHDRAWN,
            )
        if request.files:
            raise RequestError(
                "a question is open: answer the question in text only, and attach files to your next request"
            )
        value = words_reply(request.words, state.question or {})
        await self._threads.record_reply(request.owner, request.history, point, request.words)
        return Reply(value, point.question_id)

    @staticmethod
    def _new_turn(request: IncomingRequest, history: list[BaseMessage], follows: str = "") -> Say:
        turn_request = TurnRequest(origin=SERVE_CHANNEL, person=request.owner.person, switch_hints=SERVE_SWITCH_HINTS)
        return Say(request.words, turn_request, history=tuple(history), follows=follows, files=request.files)

    async def _was_stopped_during_write(self, session: str) -> bool:
        if await self._is_busy(session):
            return False
        state = await self._sessions.state(session)
        return state.is_unfinished and await self._sessions.has_started_write(state.packet)

    async def _is_busy(self, session: str) -> bool:
        return self._sessions.queue(session).locked() or await self._sessions.is_leased(session)

    async def _answer_pieces(self, request: IncomingRequest, session: str, turn: UserInput) -> AsyncGenerator[Piece]:
        shown, aside, asked, usage, limit = ShownText(WITHDRAWN), "", "", TokenUsage(), request.limit
        async with aclosing(run_turn(self._sessions, turn, session, request.rights)) as events:
            async for event in events:
                match event:
                    case Waiting() | StageStarted():
                        if isinstance(event, StageStarted):
                            shown.start_stage(event.stage)
                        yield None
                    case StageFinished(usage=spent) | StageStopped(usage=spent):
                        usage += spent
                    case AnswerPiece():
                        yield limit.feed(shown.add(event))
                    case SideTurnFinished(packet):
                        aside = f"{_answer_text(packet)}\n\n"
                    case Asked(question, packet):
                        shown_before = turn.question_id if event.is_known and isinstance(turn, Reply) else ""
                        asked = "" if shown_before else question_message(question)
                        rest = limit.close(shown.rest((aside + asked).rstrip()).removesuffix(asked))
                        asked = f"\n\n{asked}" if limit.has_ended and asked else asked
                        question_id = shown_before or str(question.get("question_id", ""))
                        point = ThreadPoint(session, packet.header.packet_id, question_id)
                    case Finished(packet):
                        rest = limit.close(shown.rest(_answer_text(packet)))
                        point = ThreadPoint(session, packet.header.packet_id)
        messages = (*request.history, request.message, HistoryMessage("assistant", limit.text + asked))
        await self._threads.record(request.owner, messages, point)  # before the client can continue from the answer
        yield rest + asked
        yield AnswerEnd(usage, limit.is_cut)


def question_message(question: dict[str, Any]) -> str:
    """Return a question as a message: all calls in a code block, then how to answer."""
    block = fenced(rendering.question(question).plain.rstrip("\n"), "text")
    mark = f"(question {str(question.get('question_id', ''))[:ID_DIGITS]})"
    if question.get("kind") == "question":
        return f"{block}\n\nAnswer in your own words. {mark}"
    requests = question["action_requests"]
    words = ", ".join(f"`{word}`" for word in ("yes", "no", "skip", *remember_words(question)))
    edit = "`edit {...}`" if len(requests) == 1 else f"for all {len(requests)}, `edit [{{...}}, ...]`"
    return (
        f"{block}\n\nWaiting for approval; not run. Answer {words}, {edit} with other arguments, or what to do "
        f"instead. {mark}"
    )


def is_question_message(text: str) -> bool:
    """Whether a message ends with the id marker of a question."""
    return _MARK.search(text) is not None


def _answer_text(packet: CognitionPacket) -> str:
    answer = packet.messages[-1].text.strip() or "(no answer)"
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    risks = sorted({call.risk for call in calls if call.result and call.result.dry_run})
    missing = [risk for risk in risks if risk in SWITCHES and SWITCHES[risk] not in answer]
    return answer + "".join(
        f"\n\n[{risk} tools are switched off: {SERVE_SWITCH_HINTS.for_risk(risk)}.]" for risk in missing
    )


def _is_decided(point: ThreadPoint, state: SessionState) -> bool:
    ended = state.question is None and not state.is_unfinished
    return bool(point.question_id) and ended and state.packet.header.packet_id == point.packet_id


def _is_reply(point: ThreadPoint, words: str) -> bool:
    """Whether words are the reply that decided a question, or decide a question that was answered elsewhere."""
    return point.reply == words or (not point.reply and read_reply(words) is not None)


def _as_messages(history: History, own_indexes: Container[int] = ()) -> list[BaseMessage]:
    """Return the newest messages of a history that fit, with leaked markup removed from the assistant's.

    Messages at the indexes in `own_indexes` are the user's own words; all others are marked as supplied by the client.
    """
    messages: list[BaseMessage] = []
    chars_left = MAX_REQUEST_CHARS
    for at, message in reversed([*enumerate(history)]):
        is_user = message.role == "user"
        text = message.text if is_user else strip_markup(message.text).text
        chars_left -= len(text)
        if chars_left < 0:
            break
        if text.strip():
            kind = HumanMessage if is_user else AIMessage
            messages.append(kind(text, additional_kwargs={} if at in own_indexes else {CLIENT_SUPPLIED: True}))
    return messages[::-1]
