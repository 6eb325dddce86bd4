"""A request as a turn of its session, and the turn as pieces of text."""

from collections.abc import AsyncGenerator, Container, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from packetgate.connectors.asking import Continue, Reply, Say, Turn
from packetgate.connectors.serve.protocol import Said
from packetgate.connectors.serve.questions import is_question, reply_in, written
from packetgate.connectors.serve.threads import Point, Scope, Threads, settled
from packetgate.connectors.sessions import AnswerPiece, Sessions, SessionState
from packetgate.connectors.turn import Aside, Asked, Finished, Waiting, run_turn
from packetgate.models.markup.stripping import strip_markup
from packetgate.state.base import TokenUsage, new_id
from packetgate.state.channels import WayOut
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.events import StageFinished, StageStarted, StageStopped
from packetgate.state.packet import TOLD, CognitionPacket
from packetgate.state.request import MAX_REQUEST_CHARS, TurnRequest
from packetgate.state.routing import Risk
from packetgate.tools.approval.questions import is_reply
from packetgate.tools.attached.parts import Part

CHANNEL = "serve"
WAY_OUT = WayOut(
    write="whoever runs this server switches them on: `packetgate serve --allow-writes`, "
    "or `allow_writes = true` under `[serve.clients.NAME]` in packetgate.toml",
    execute="whoever runs this server switches them on: `packetgate serve --allow-commands`, "
    "or `allow_commands = true` under `[serve.clients.NAME]` in packetgate.toml",
)
WITHDRAWN = "\n\n[the above is withdrawn; this is the answer:]\n\n"
DECIDED = "(That was decided already: nothing was run again. This came of it:)\n\n"
NOT_WAITING = "that question does not wait here any more, or is another conversation's: nothing was run; ask anew"
WORDS_ALONE = "a question waits here, and its answer is words alone: answer it, and attach files to what you ask next"
NOT_ALLOWED = "what waits may not be done here any more: nothing was run; it needs --allow-writes or --allow-commands"


@dataclass(frozen=True)
class Heard:
    """A request: what was said before, what is said now, by whom, and what they may do."""

    scope: Scope
    history: tuple[Said, ...]
    said: Said
    words: str
    """Of what is said, its words alone."""
    files: tuple[Part, ...]
    """What is attached to it."""
    rights: RoutingContext


@dataclass(frozen=True)
class Stage:
    """A stage has begun, and nothing is there to show yet."""

    name: str


@dataclass(frozen=True)
class Over:
    """The answer is whole."""

    usage: TokenUsage


Piece = str | Stage | Over
"""A text is a piece of the answer."""


class Conversations:
    """All clients' conversations."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._threads = Threads(sessions)

    async def hear(self, heard: Heard) -> AsyncGenerator[Piece]:
        """Run the turn that a request is, and yield what its client is shown. Closing it stops the turn.

        Raises:
            InputError: it cannot be used; nothing was done.
        """
        point = await self._threads.find(heard.scope, heard.history)
        state = await self.sessions.state(point.session) if point else None
        if point and state and _is_decided(point, state) and point.reply == heard.words:
            yield DECIDED + state.packet.messages[-1].text
            yield Over(TokenUsage())
            return
        session, turn = await self._turn(heard, point, state)
        async for piece in self._shown(heard, session, turn):
            yield piece
        if point and isinstance(turn, Reply):
            await self._threads.replied(heard.scope, heard.history, point, heard.words, counted=True)

    async def _turn(self, heard: Heard, point: Point | None, state: SessionState | None) -> tuple[str, Turn]:
        """Return the session that a request goes to, and what it is there."""
        request = TurnRequest(origin=CHANNEL, person=heard.scope.person, way_out=WAY_OUT)
        answered = settled(heard.history)
        if point and state and point.question_id:
            if state.question is not None:
                if not state.may_go_on(heard.rights):
                    raise RequestError(NOT_ALLOWED)
                if heard.files:
                    raise RequestError(WORDS_ALONE)
                value = reply_in(heard.words, state.question)
                await self._threads.replied(heard.scope, heard.history, point, heard.words)
                return point.session, Reply(value, point.question_id)
            if _stopped_in(point, state) and point.reply == heard.words:
                return point.session, Continue()
        elif point and state and not await self._is_busy(point.session):
            if state.packet.header.packet_id == point.packet_id and not state.is_unfinished:
                added = tuple(_told(heard.history[len(answered) :], ()))
                follows = point.packet_id
                return point.session, Say(heard.words, request, history=added, follows=follows, files=heard.files)
            same = state.packet.content.original_prompt == heard.words.strip()
            if _stopped_after(point, state) and (same or await self.sessions.has_begun(state.packet)):
                return point.session, Continue()
        if answered and is_question(answered[-1].text) and is_reply(heard.words):
            raise RequestError(NOT_WAITING)
        whole = (*heard.history, heard.said)
        for session in await self._threads.begun(heard.scope, whole):
            if await self._is_stopped_in_a_change(session):
                return session, Continue()
        session = f"{CHANNEL}-{new_id()}"
        await self._threads.begin(heard.scope, whole, session)
        own = await self._threads.heard(heard.scope, heard.history)
        told = tuple(_told(heard.history, own))
        return session, Say(heard.words, request, history=told, files=heard.files)

    async def _is_stopped_in_a_change(self, session: str) -> bool:
        """Whether a session's first turn ended before it could tell of what it may have changed."""
        if await self._is_busy(session):
            return False
        state = await self.sessions.state(session)
        return state.is_unfinished and await self.sessions.has_begun(state.packet)

    async def _is_busy(self, session: str) -> bool:
        return self.sessions.queue(session).locked() or await self.sessions.is_leased(session)

    async def _shown(self, heard: Heard, session: str, turn: Turn) -> AsyncGenerator[Piece]:
        shown, aside, usage = "", "", TokenUsage()
        async with aclosing(run_turn(self.sessions, turn, session, heard.rights)) as events:
            async for event in events:
                match event:
                    case Waiting():
                        yield Stage("waiting")
                    case StageStarted(stage=stage):
                        yield Stage(stage)
                    case StageFinished(usage=spent) | StageStopped(usage=spent):
                        usage += spent
                    case AnswerPiece(text=text):
                        shown += text
                        yield text
                    case Aside(packet):
                        aside = f"{_answer(packet)}\n\n"
                    case Asked(question, packet):
                        rest = _rest(shown, aside + written(question))
                        point = Point(session, packet.header.packet_id, str(question.get("question_id", "")))
                    case Finished(packet):
                        rest = _rest(shown, _answer(packet))
                        point = Point(session, packet.header.packet_id)
        said = (*heard.history, heard.said, Said("assistant", shown + rest))
        await self._threads.keep(heard.scope, said, point)  # before it is whole: whoever has it all can go on from it
        yield rest
        yield Over(usage)


def _rest(shown: str, whole: str) -> str:
    """Return what is to follow what was shown already, so that the whole stands there."""
    if whole.startswith(shown):
        return whole.removeprefix(shown)
    return "" if shown.strip() == whole.strip() else WITHDRAWN + whole


def _answer(packet: CognitionPacket) -> str:
    """Return a turn's answer, with what a model's does not say: how tools of a risk are switched on."""
    answer = packet.messages[-1].text.strip() or "(no answer)"
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    risks = sorted({call.risk for call in calls if call.result and call.result.dry_run})
    options = {Risk.WRITE: "--allow-writes", Risk.EXECUTE: "--allow-commands"}
    missing = [risk for risk in risks if risk in options and options[risk] not in answer]
    return answer + "".join(f"\n\n[{risk} tools are switched off: {WAY_OUT.of(risk)}.]" for risk in missing)


def _is_decided(point: Point, state: SessionState) -> bool:
    """Whether a question was answered, and its turn has come to its end."""
    ended = state.question is None and not state.is_unfinished
    return bool(point.question_id) and ended and state.packet.header.packet_id == point.packet_id


def _stopped_in(point: Point, state: SessionState) -> bool:
    """Whether the turn of that point was stopped before its end."""
    return state.is_unfinished and state.packet.header.packet_id == point.packet_id


def _stopped_after(point: Point, state: SessionState) -> bool:
    """Whether the turn that follows on that point was."""
    return state.is_unfinished and state.packet.header.parent_packet_id == point.packet_id


def _told(history: Sequence[Said], own: Container[int]) -> list[BaseMessage]:
    """Return a history as messages: the newest as far as they have room, without leaked markup in the assistant's.

    Those at the places in `own` are the user's own words; all others may hold what a client has put there.
    """
    told: list[BaseMessage] = []
    room = MAX_REQUEST_CHARS
    for at, one in reversed([*enumerate(history)]):
        text = one.text if one.role == "user" else strip_markup(one.text).text
        room -= len(text)
        if room < 0:
            break
        kind = HumanMessage if one.role == "user" else AIMessage
        if text.strip():
            told.insert(0, kind(text, additional_kwargs={} if at in own else {TOLD: True}))
    return told
