"""Turns on Discord: one at a time per session, with progress, open questions and answers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import discord
from pydantic import AwareDatetime, TypeAdapter, ValidationError

from packetgate.connectors.discord.messages import LiveMessage, pictures_of, read_message, words_of
from packetgate.connectors.discord.presenting import buttons, headline, parts
from packetgate.connectors.sessions import Sessions, SessionState
from packetgate.connectors.turn import RESUMING, Aside, Asked, Finished, Reply, Resuming, Turn, Waiting, run_turn
from packetgate.graph.private_files import private_file
from packetgate.state.base import Section, now
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, PacketgateError, RequestError
from packetgate.state.events import StageStarted
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolRouting
from packetgate.tools.approval.replies import decides
from packetgate.tools.text.result_store import ResultStore

log = logging.getLogger(__name__)

Mark = Callable[["OpenQuestion", str], Awaitable[None]]
"""Removes the buttons of a question's message and writes its outcome there."""

LAPSED = "⌛ This lapsed unanswered: nothing was run."


class OpenQuestion(Section):
    """An open question and its message."""

    session: str
    channel: int
    message: int
    asker: int
    key: str
    expires_at: AwareDatetime | None = None

    @property
    def has_lapsed(self) -> bool:
        """Whether the question has expired."""
        return self.expires_at is not None and now() > self.expires_at


_OPEN = TypeAdapter(list[OpenQuestion])


def expiry_of(question: Mapping[str, Any]) -> datetime | None:
    """Return when a question expires, or None."""
    written = question.get("expires_at")
    return datetime.fromisoformat(written) if isinstance(written, str) else None


class OpenQuestions:
    """The open questions, at most one per session, kept in a file that only the bot writes."""

    def __init__(self, file: Path, mark: Mark) -> None:
        self._file = file
        self._mark = mark
        self._open: dict[str, OpenQuestion] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        """Restore the questions that were open when the bot stopped. Raise ConfigError if the file cannot be read."""
        try:
            kept = _OPEN.validate_json(await asyncio.to_thread(self._file.read_bytes))
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            raise ConfigError(f"{self._file}: cannot be read: delete it; buttons still work without it") from error
        for question in kept:
            self._watch(question)

    def of(self, session: str) -> OpenQuestion | None:
        """Return a session's open question."""
        return self._open.get(session)

    async def add(self, question: OpenQuestion) -> None:
        """Keep a question until it is answered or expires."""
        self._watch(question)
        await self._save()

    async def remove(self, session: str) -> None:
        """Forget a session's question."""
        self._unwatch(session)
        if self._open.pop(session, None) is not None:
            await self._save()

    async def close(self, session: str, line: str) -> None:
        """Remove the buttons of a session's question, replace its first line, and forget it."""
        question = self._open.get(session)
        if question is not None:
            self._unwatch(session)
            await self._mark(question, line)  # before it is forgotten: a bot that is stopped in between does it again
            await self.remove(session)

    def stop(self) -> None:
        """Stop the timers; open questions stay in the file."""
        for timer in self._timers.values():
            timer.cancel()

    def _watch(self, question: OpenQuestion) -> None:
        self._unwatch(question.session)
        self._open[question.session] = question
        if question.expires_at is not None:
            self._timers[question.session] = asyncio.create_task(self._lapse(question, question.expires_at))

    def _unwatch(self, session: str) -> None:
        timer = self._timers.pop(session, None)
        if timer is not None and timer is not asyncio.current_task():
            timer.cancel()

    async def _lapse(self, question: OpenQuestion, expires_at: datetime) -> None:
        await asyncio.sleep(max(0.0, (expires_at - now()).total_seconds()))
        await self.close(question.session, LAPSED)

    async def _save(self) -> None:
        async with self._writing:
            await asyncio.to_thread(self._write, _OPEN.dump_json(list(self._open.values())))

    def _write(self, data: bytes) -> None:
        new = self._file.with_suffix(".new")
        private_file(new)
        new.write_bytes(data)
        new.replace(self._file)


STOPPED = "I was stopped in the middle of this. Please ask again."
NOT_YOURS = "Only the one who asked, or somebody who approves here, can decide this, and only what they may still do."
ANSWERED = "💬 Something was said to this: what came of it stands below."
GONE_ON = "💨 The conversation went on before this was answered: nothing was run, and it is asked again below."


def session_of(channel_id: int) -> str:
    """Return the session name of a direct message, thread or channel."""
    return f"discord:{channel_id}"


@dataclass(frozen=True)
class ShownTurn:
    """One message or button press, and the message that shows its result."""

    session: str
    asker: int
    """The user whose turn it is."""
    rights: RoutingContext
    live: LiveMessage


class Conversations:
    """The turns of all channels."""

    def __init__(self, sessions: Sessions, questions: OpenQuestions, kept: ResultStore) -> None:
        self.sessions = sessions
        self._kept = kept
        self.questions = questions
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, session: str) -> asyncio.Lock:
        """Return the lock that allows one turn at a time in a session."""
        return self._locks.setdefault(session, asyncio.Lock())

    async def hear(self, message: discord.Message, me: discord.abc.User, rights: RoutingContext) -> None:
        """Run the turn of a message to the bot, after earlier turns of its session."""
        session = session_of(message.channel.id)
        here = ShownTurn(session, message.author.id, rights, LiveMessage(message))
        async with self.lock(session), self._errors_shown(here):
            state, words = await self.sessions.state(session), words_of(message, me)
            question = self.questions.of(session)
            asked = state.question if _is_theirs(message, words, state, question) else None
            decided = state.question is not None and decides(words, state.question)
            if decided and not (asked and state.may_go_on(rights)):
                await here.live.end(NOT_YOURS)
                return
            if asked and not message.attachments:
                await self.questions.close(session, ANSWERED)
                await self._run(Reply(words, str(asked.get("question_id", ""))), here)
                return
            read = await read_message(message, me, [one.text for one in state.packet.conversation])
            here.live.notes = read.left_out
            await self.questions.close(session, GONE_ON)
            await self._run(read.turn, here)

    async def reply(self, reply: Reply, to: discord.Message, asker: int, rights: RoutingContext) -> None:
        """Resume a turn with the reply to its question. The caller holds the session's lock."""
        here = ShownTurn(session_of(to.channel.id), asker, rights, LiveMessage(to))
        async with self._errors_shown(here):
            await self._run(reply, here)

    async def forget(self, session: str) -> None:
        """Delete a session once its turn is over."""
        async with self.lock(session):
            await self.questions.close(session, GONE_ON)
            await self.sessions.forget(session)

    async def _run(self, turn: Turn, here: ShownTurn) -> None:
        running = run_turn(self.sessions, turn, here.session, here.rights)
        async with here.live.channel.typing(), aclosing(running) as events:
            async for event in events:
                match event:
                    case Waiting():
                        await here.live.show("wait")
                    case Resuming():
                        here.live.notes += [RESUMING]
                    case StageStarted(stage=stage):
                        await here.live.show(stage)
                    case Aside(packet):
                        await self._answer(packet, here)
                        here.live.begin_anew()
                    case Asked(question, packet):
                        await self._ask(question, here, packet.header.person)
                    case Finished(packet):
                        await self._answer(packet, here)

    async def _answer(self, packet: CognitionPacket, here: ShownTurn) -> None:
        routing = packet.tool_routing or ToolRouting()
        pictures, notes = await asyncio.to_thread(pictures_of, routing.attachments, self._kept, here.session)
        here.live.notes += notes
        await here.live.end(packet.messages[-1].text.strip() or "(no answer)")
        await here.live.attach(pictures)

    async def _ask(self, question: dict[str, Any], here: ShownTurn, person: str) -> None:
        """Ask the user whose turn waits: another user's turn may have run meanwhile."""
        asker = int(person) if person.isdecimal() else here.asker
        key, lapses = str(question.get("question_id")), expiry_of(question)
        line = headline(question, asker, lapses)
        placed = await here.live.place()
        noted = OpenQuestion(
            session=here.session, channel=placed.channel.id, message=placed.id, asker=asker, key=key, expires_at=lapses
        )
        await self.questions.add(noted)  # before it is seen: a bot that is stopped in between knows of it
        sent = await here.live.ask(line, buttons(question, asker, key), **parts(question))
        if sent.id != placed.id:
            await self.questions.add(noted.model_copy(update={"message": sent.id}))

    @asynccontextmanager
    async def _errors_shown(self, here: ShownTurn) -> AsyncIterator[None]:
        """Report a turn's error to the user in one line. No turn may end the bot, so all errors are caught here."""
        try:
            yield
        except RequestError as error:
            await here.live.end(str(error))
        except asyncio.CancelledError:
            if not here.live.is_over:
                await here.live.end(STOPPED)
            raise
        except Exception:
            packet = await self._packet_of(here.session)
            log.exception("%s: packet %s broke", here.session, packet)
            await here.live.end(f"Something went wrong with packet `{packet}`. The bot's log says what.")

    async def _packet_of(self, session: str) -> str:
        try:
            return (await self.sessions.state(session)).packet.header.packet_id
        except PacketgateError:
            return "unknown"


def _is_theirs(message: discord.Message, words: str, state: SessionState, question: OpenQuestion | None) -> bool:
    """Whether a message may be a reply: it is from the user who was asked. The graph decides whether it is one."""
    asked = state.question
    if not words or question is None or asked is None or asked.get("question_id") != question.key:
        return False
    return message.author.id == question.asker and not question.has_lapsed
