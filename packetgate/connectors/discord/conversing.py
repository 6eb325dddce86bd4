"""Turns on Discord: each session's one after the other, their progress, their questions, their answers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import discord

from packetgate.connectors.asking import Reply, Turn
from packetgate.connectors.discord.incoming import read_message, words_of
from packetgate.connectors.discord.pictures import pictures_of
from packetgate.connectors.discord.presenting import buttons, headline, parts
from packetgate.connectors.discord.progress import LiveMessage
from packetgate.connectors.discord.questions import OpenQuestion, OpenQuestions, expiry_of
from packetgate.connectors.sessions import Sessions, SessionState
from packetgate.connectors.turn import GONE_ON_FIRST, Aside, Asked, Finished, GoingOn, Waiting, run_turn
from packetgate.state.context import RoutingContext
from packetgate.state.errors import PacketgateError, RequestError
from packetgate.state.events import StageStarted
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolRouting
from packetgate.tools.approval.questions import decides
from packetgate.tools.text.kept import KeptResults

log = logging.getLogger(__name__)

STOPPED = "I was stopped in the middle of this. Please ask again."
NOT_YOURS = "Only the one who asked, or somebody who approves here, can decide this, and only what they may still do."
ANSWERED = "💬 Something was said to this: what came of it stands below."
GONE_ON = "💨 The conversation went on before this was answered: nothing was run, and it is asked again below."


def session_of(channel_id: int) -> str:
    """Return the name of the session that a direct message, a thread or a channel is."""
    return f"discord:{channel_id}"


@dataclass(frozen=True)
class ShownTurn:
    """One message or press, and where that is shown which comes of it."""

    session: str
    asker: int
    """Whose turn it is."""
    rights: RoutingContext
    live: LiveMessage


class Conversations:
    """The turns of all channels."""

    def __init__(self, sessions: Sessions, questions: OpenQuestions, kept: KeptResults) -> None:
        self.sessions = sessions
        self._kept = kept
        self.questions = questions
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, session: str) -> asyncio.Lock:
        """Return what lets one turn at a time run on a session."""
        return self._locks.setdefault(session, asyncio.Lock())

    async def hear(self, message: discord.Message, me: discord.abc.User, rights: RoutingContext) -> None:
        """Run the turn of a message that is spoken to the bot, after those before it."""
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
        """Go on with a turn by the reply to its question. The caller holds the session's lock."""
        here = ShownTurn(session_of(to.channel.id), asker, rights, LiveMessage(to))
        async with self._errors_shown(here):
            await self._run(reply, here)

    async def forget(self, session: str) -> None:
        """Forget a session, once its turn is over."""
        async with self.lock(session):
            await self.questions.close(session, GONE_ON)
            await self.sessions.forget(session)

    async def _run(self, turn: Turn, here: ShownTurn) -> None:
        """Run a turn, and show what comes of it."""
        running = run_turn(self.sessions, turn, here.session, here.rights)
        async with here.live.channel.typing(), aclosing(running) as events:
            async for event in events:
                match event:
                    case Waiting():
                        await here.live.show("wait")
                    case GoingOn():
                        here.live.notes += [GONE_ON_FIRST]
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
        """Show a turn's answer, with the pictures that its tools returned."""
        routing = packet.tool_routing or ToolRouting()
        pictures, notes = await asyncio.to_thread(pictures_of, routing.attachments, self._kept, here.session)
        here.live.notes += notes
        await here.live.end(packet.messages[-1].text.strip() or "(no answer)")
        await here.live.attach(pictures)

    async def _ask(self, question: dict[str, Any], here: ShownTurn, person: str) -> None:
        """Put a question to whose turn waits: another's may have run meanwhile."""
        asker = int(person) if person.isdecimal() else here.asker
        key, lapses = str(question.get("question_id")), expiry_of(question)
        line = headline(question, asker, lapses)
        placed = await here.live.place()
        noted = OpenQuestion(
            session=here.session,
            channel=placed.channel.id,
            message=placed.id,
            asker=asker,
            key=key,
            expires_at=lapses,
        )
        await self.questions.add(noted)  # before it is seen: a bot that is stopped in between knows of it
        sent = await here.live.ask(line, buttons(question, asker, key), **parts(question))
        if sent.id != placed.id:
            await self.questions.add(noted.model_copy(update={"message": sent.id}))

    @asynccontextmanager
    async def _errors_shown(self, here: ShownTurn) -> AsyncIterator[None]:
        """Tell the user in a line what ended a turn. No turn ends the bot: here is the outermost edge of each."""
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
    """Whether a message is of who was asked what waits, so that it may be a reply; the graph says whether it is."""
    asked = state.question
    if not words or question is None or asked is None or asked.get("question_id") != question.key:
        return False
    return message.author.id == question.asker and not question.has_lapsed
