"""Run a request as a turn of its session, and render its answer or question as text."""

import json
import re
from collections.abc import AsyncGenerator, Container, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from packetgate.connectors import rendering
from packetgate.connectors.serve.protocol import HistoryMessage
from packetgate.connectors.serve.threads import Point, Scope, Threads, settled
from packetgate.connectors.sessions import AnswerPiece, Sessions, SessionState
from packetgate.connectors.turn import Aside, Asked, Continue, Finished, Reply, Say, Turn, Waiting, run_turn
from packetgate.models.markup.stripping import strip_markup
from packetgate.state.base import TokenUsage, new_id
from packetgate.state.channels import WayOut
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.events import StageFinished, StageStarted, StageStopped
from packetgate.state.packet import TOLD, CognitionPacket
from packetgate.state.printing import fenced
from packetgate.state.request import MAX_REQUEST_CHARS, TurnRequest
from packetgate.state.routing import Risk
from packetgate.tools.approval.questions import is_reply
from packetgate.tools.attached.parts import Part

SHOWN = 16
"""Digits of a question's id at the end of its message, too many to guess."""

_MARK = re.compile(rf"\(question [0-9a-f]{{{SHOWN}}}\)\s*$")
_EDIT = re.compile(r"\s*edit\s*:?\s*(?=[\[{])", re.IGNORECASE)


def written(question: dict[str, Any]) -> str:
    """Return a question as a message: all calls as a terminal shows them, in a code block."""
    body = fenced(rendering.question(question).plain.rstrip("\n"), "text")
    mark = f"(question {str(question.get('question_id', ''))[:SHOWN]})"
    if question.get("kind") == "question":
        return f"{body}\n\nAnswer in your own words. {mark}"
    requests = question["action_requests"]
    more = [word for word in requests[0].get("remember", ()) if all(word in one["remember"] for one in requests)]
    words = ", ".join(f"`{word}`" for word in ("yes", "no", "skip", *more))
    edit = "`edit {...}` with other arguments" if len(requests) == 1 else "`edit [{...}, ...]` with arguments for each"
    every = "" if len(requests) == 1 else f" for all {len(requests)}"
    return (
        f"{body}\n\nThis waits for you, and has not run. Answer {words}{every}, {edit}, or what to do instead. {mark}"
    )


def is_question(text: str) -> bool:
    """Whether a message ends with a question's mark."""
    return _MARK.search(text) is not None


def reply_in(words: str, question: dict[str, Any]) -> Any:
    """Return the reply in a message: the user's words, or an edit. Raise RequestError if the edit cannot be read."""
    begins = _EDIT.match(words)
    if begins is None or question.get("kind") == "question":
        return words
    requests = question["action_requests"]
    try:
        given = json.loads(words[begins.end() :])
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the arguments are not JSON: {error}; nothing was run, the question still waits") from error
    edited = given if isinstance(given, list) else [given]
    if len(edited) != len(requests) or not all(isinstance(one, dict) for one in edited):
        raise RequestError(
            f"an edit of {len(requests)} calls takes as many objects of arguments; nothing was run, the question waits"
        )
    pairs = zip(requests, edited, strict=True)
    return {
        "decisions": [{"type": "edit", "edited_action": {"name": one["name"], "args": args}} for one, args in pairs]
    }


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
class IncomingRequest:
    """A request: its history, the new message, the client and its rights."""

    scope: Scope
    history: tuple[HistoryMessage, ...]
    said: HistoryMessage
    words: str
    """The words of the new message."""
    files: tuple[Part, ...]
    """The attachments of the new message."""
    rights: RoutingContext


@dataclass(frozen=True)
class Stage:
    """A stage began; there is no text yet."""

    name: str


@dataclass(frozen=True)
class TurnEnd:
    """The answer is complete."""

    usage: TokenUsage


Piece = str | Stage | TurnEnd
"""A string is a piece of the answer."""


class Conversations:
    """All clients' conversations."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self._threads = Threads(sessions)

    async def answer(self, asked: IncomingRequest) -> AsyncGenerator[Piece]:
        """Run the turn of a request and yield the pieces of its answer. Closing this stops the turn.

        Raises:
            InputError: it cannot be used; nothing was done.
        """
        point = await self._threads.find(asked.scope, asked.history)
        state = await self.sessions.state(point.session) if point else None
        if point and state and _is_decided(point, state) and point.reply == asked.words:
            yield DECIDED + state.packet.messages[-1].text
            yield TurnEnd(TokenUsage())
            return
        session, turn = await self._turn(asked, point, state)
        async for piece in self._shown(asked, session, turn):
            yield piece
        if point and isinstance(turn, Reply):
            await self._threads.replied(asked.scope, asked.history, point, asked.words, counted=True)

    async def _turn(self, asked: IncomingRequest, point: Point | None, state: SessionState | None) -> tuple[str, Turn]:
        request = TurnRequest(origin=CHANNEL, person=asked.scope.person, way_out=WAY_OUT)
        answered = settled(asked.history)
        if point and state and point.question_id:
            if state.question is not None:
                if not state.may_go_on(asked.rights):
                    raise RequestError(NOT_ALLOWED)
                if asked.files:
                    raise RequestError(WORDS_ALONE)
                value = reply_in(asked.words, state.question)
                await self._threads.replied(asked.scope, asked.history, point, asked.words)
                return point.session, Reply(value, point.question_id)
            if _stopped_in(point, state) and point.reply == asked.words:
                return point.session, Continue()
        elif point and state and not await self._is_busy(point.session):
            if state.packet.header.packet_id == point.packet_id and not state.is_unfinished:
                added = tuple(_as_messages(asked.history[len(answered) :], ()))
                follows = point.packet_id
                return point.session, Say(asked.words, request, history=added, follows=follows, files=asked.files)
            same = state.packet.content.original_prompt == asked.words.strip()
            if _stopped_after(point, state) and (same or await self.sessions.has_begun(state.packet)):
                return point.session, Continue()
        if answered and is_question(answered[-1].text) and is_reply(asked.words):
            raise RequestError(NOT_WAITING)
        whole = (*asked.history, asked.said)
        for session in await self._threads.begun(asked.scope, whole):
            if await self._is_stopped_in_a_change(session):
                return session, Continue()
        session = f"{CHANNEL}-{new_id()}"
        await self._threads.begin(asked.scope, whole, session)
        own = await self._threads.own_messages(asked.scope, asked.history)
        earlier = tuple(_as_messages(asked.history, own))
        return session, Say(asked.words, request, history=earlier, files=asked.files)

    async def _is_stopped_in_a_change(self, session: str) -> bool:
        if await self._is_busy(session):
            return False
        state = await self.sessions.state(session)
        return state.is_unfinished and await self.sessions.has_begun(state.packet)

    async def _is_busy(self, session: str) -> bool:
        return self.sessions.queue(session).locked() or await self.sessions.is_leased(session)

    async def _shown(self, asked: IncomingRequest, session: str, turn: Turn) -> AsyncGenerator[Piece]:
        shown, aside, usage = "", "", TokenUsage()
        async with aclosing(run_turn(self.sessions, turn, session, asked.rights)) as events:
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
        said = (*asked.history, asked.said, HistoryMessage("assistant", shown + rest))
        await self._threads.keep(asked.scope, said, point)  # before it is whole: whoever has it all can go on from it
        yield rest
        yield TurnEnd(usage)


def _rest(shown: str, whole: str) -> str:
    if whole.startswith(shown):
        return whole.removeprefix(shown)
    return "" if shown.strip() == whole.strip() else WITHDRAWN + whole


def _answer(packet: CognitionPacket) -> str:
    answer = packet.messages[-1].text.strip() or "(no answer)"
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    risks = sorted({call.risk for call in calls if call.result and call.result.dry_run})
    options = {Risk.WRITE: "--allow-writes", Risk.EXECUTE: "--allow-commands"}
    missing = [risk for risk in risks if risk in options and options[risk] not in answer]
    return answer + "".join(f"\n\n[{risk} tools are switched off: {WAY_OUT.of(risk)}.]" for risk in missing)


def _is_decided(point: Point, state: SessionState) -> bool:
    ended = state.question is None and not state.is_unfinished
    return bool(point.question_id) and ended and state.packet.header.packet_id == point.packet_id


def _stopped_in(point: Point, state: SessionState) -> bool:
    return state.is_unfinished and state.packet.header.packet_id == point.packet_id


def _stopped_after(point: Point, state: SessionState) -> bool:
    return state.is_unfinished and state.packet.header.parent_packet_id == point.packet_id


def _as_messages(history: Sequence[HistoryMessage], own: Container[int]) -> list[BaseMessage]:
    """Return the newest messages of a history that fit, with leaked markup removed from the assistant's.

    Messages at the indexes in `own` are the user's own words; all others may come from the client.
    """
    messages: list[BaseMessage] = []
    room = MAX_REQUEST_CHARS
    for at, one in reversed([*enumerate(history)]):
        text = one.text if one.role == "user" else strip_markup(one.text).text
        room -= len(text)
        if room < 0:
            break
        kind = HumanMessage if one.role == "user" else AIMessage
        if text.strip():
            messages.insert(0, kind(text, additional_kwargs={} if at in own else {TOLD: True}))
    return messages
