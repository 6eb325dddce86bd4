"""Turns on Discord: one at a time per conversation, with questions, button presses and answers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import discord

from packetgate.connectors.discord.config import LiveConfig, person_of
from packetgate.connectors.discord.messages import (
    REQUEST_ERRORS,
    DiscordTurn,
    continues_without_reply,
    read_turn,
    uploadable_pictures,
    words_in_message,
)
from packetgate.connectors.discord.points import Point, Points
from packetgate.connectors.discord.questions import (
    NOT_AUTHORISED,
    DecisionButton,
    decision_buttons,
    headline,
    question_parts,
    reply_of,
    requester_id,
)
from packetgate.connectors.sessions import Sessions, has_expired
from packetgate.connectors.turn import (
    RESUMING,
    Asked,
    Finished,
    Reply,
    Resuming,
    SideTurnFinished,
    UserInput,
    run_turn,
    words_reply,
)
from packetgate.gate.replies import asked_calls, read_reply
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ModelError, PacketgateError, RequestError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolRouting
from packetgate.tools.text.result_store import ResultStore

STOPPED = "The bot was stopped during this turn. Please ask again."
FAILED_HERE = "the turn did not go on; the bot's channel says why"
NOT_SHOWN_NOW = "the question is not the last message on Discord, so its result could not be shown: answer it there"
ANSWERED_ELSEWHERE = "💻 Answered in a terminal; the result is below."
ANSWERED = "💬 Answered by a message; the result is below."
REPEATED_BELOW = "💨 Not answered before the next message: nothing was run. The question is repeated below."

PRESS_PATIENCE_S = 2.0
"""Seconds that a press waits for the session's turn to end; Discord requires an answer within three seconds."""
DELETED = "🗑️ The conversation was deleted: nothing was run."
EXPIRED = "⌛ Expired without an answer: nothing was run."
QUESTION_CLOSED = "This question is no longer open: nothing was run."
ASKER_GONE = "The person who asked has left or lost the permission: nothing was run."

log = logging.getLogger(__name__)


def session_of(channel: Any, first: object) -> str:
    """Return the name of the session that a message starts in a channel; `first` is the message's id."""
    return f"discord:{channel.id}:{first}"


class DiscordConversations:
    """Runs the turns of all conversations, and the decisions about their questions. A session belongs to one user."""

    def __init__(self, sessions: Sessions, results: ResultStore, live: LiveConfig) -> None:
        self.sessions = sessions
        self._live = live
        self._points = Points(sessions.store)
        self._results = results
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        sessions.run_answer = self.run_recorded
        self._shown_questions: dict[str, tuple[discord.Message | None, str]] = {}
        """Maps a session to the message and the id of the question that the bot showed last since its start. There is
        no message if the question is still open and was not shown again."""

    def lock(self, session: str) -> asyncio.Lock:
        """Return the lock that allows one turn at a time in a session."""
        return self._locks.setdefault(session, asyncio.Lock())

    async def answer(
        self, message: discord.Message, me: discord.abc.User, rights: RoutingContext, notes: list[str]
    ) -> None:
        """Run the turn of a message to the bot, after the earlier turns of the message's conversation."""
        words, goes_on = words_in_message(message, me), continues_without_reply(message, me)
        reply = DiscordTurn(
            session_of(message.channel, message.id), message.author.id, rights, message, self._points, notes=notes
        )
        queue = self.lock(f"place {message.channel.id}") if goes_on else nullcontext()
        async with queue, self._report_errors(reply):
            replied = message.reference.message_id if message.reference else None
            known = await self._points.find(replied, message.channel) if replied else None
            reply.point = known or await self._point_without_reply(message, words, goes_on=goes_on)
            take_turn = partial(self._answer, message, me, reply, words, is_known_reply=known is not None)
            if (point := reply.point) is not None:
                if await self._continues(point, reply, words):
                    async with self.lock(point.session):
                        if await self._continues(point, reply, words):  # unless the previous turn changed that
                            reply.session = point.session
                            await take_turn()
                            return
                await self.sessions.branch(point.session, point.packet_id, reply.session, str(reply.asker))
            async with self.lock(reply.session):
                await take_turn()

    async def _point_without_reply(self, message: discord.Message, words: str, *, goes_on: bool) -> Point | None:
        """Return the turn that a message continues if it replies to no message of a conversation."""
        place = message.channel
        asked = None if message.reference else await self._points.find(f"question {place.id}", place)
        if asked is not None and _decides(words, (await self.sessions.state(asked.session)).question):
            return asked
        if not goes_on:
            return None
        # a thread has the id of the message that it starts from
        return await self._points.find(f"last {place.id}", place) or await self._points.find(place.id, place)

    async def _continues(self, point: Point, reply: DiscordTurn, words: str) -> bool:
        """Whether a message continues the session itself, not a copy (of its middle, for a new thread or user)."""
        state = await self.sessions.state(point.session)
        is_last = state.packet.header.packet_id == point.packet_id and requester_id(state.packet) == reply.asker
        return point.channel == str(reply.to.channel.id) and (is_last or _decides(words, state.question))

    async def _answer(
        self, message: discord.Message, me: discord.abc.User, reply: DiscordTurn, words: str, *, is_known_reply: bool
    ) -> None:
        session = reply.session
        state = await self.sessions.state(session)
        question = state.question
        is_askers = words != "" and requester_id(state.packet) == reply.asker
        may_reply = question is not None and is_askers and not has_expired(question)
        may_decide = may_reply and state.still_allows_calls(reply.rights)
        if not may_decide and _decides(words, question):
            await reply.end(NOT_AUTHORISED)
        elif question is not None and may_reply and not message.attachments:
            _, shown_id = self._shown_questions.get(session, (None, ""))
            # Without an id, the turn shows the question first.
            await self.close_question(session, ANSWERED)
            await self._run(Reply(words_reply(words, question), shown_id), reply, shown_id)
        else:
            turn, notes = await read_turn(message, me, is_known_reply=is_known_reply)
            reply.notes += notes
            await self.close_question(session, REPEATED_BELOW)
            await self._run(turn, reply)

    async def decide(self, interaction: discord.Interaction[Any], button: DecisionButton) -> None:
        """Resume the turn; only the user who pressed sees why a press is refused."""
        message = interaction.message
        if message is None:
            return
        session = session_of(message.channel, button.first)
        try:
            async with AsyncExitStack() as held:
                try:
                    async with asyncio.timeout(PRESS_PATIENCE_S):
                        await held.enter_async_context(self.lock(session))
                except TimeoutError as error:  # another press or a new message holds the session's lock
                    raise RequestError(QUESTION_CLOSED) from error
                await self._decide(interaction, message, button, session)
        except RequestError as error:
            await interaction.response.send_message(str(error)[:2_000], ephemeral=True)

    async def _decide(
        self, interaction: discord.Interaction[Any], message: discord.Message, button: DecisionButton, session: str
    ) -> None:
        state = await self.sessions.state(session)
        question, asker = state.question, requester_id(state.packet)
        if question is None or question.get("question_id") != button.question_id:
            raise RequestError(QUESTION_CLOSED)
        if not self._live.config.may_decide(person_of(interaction.user, interaction.channel), asker):
            raise RequestError(NOT_AUTHORISED)
        if has_expired(question):
            await interaction.response.edit_message(content=EXPIRED, view=None)
            return
        rights = await self._rights_of(asker, interaction, interaction.user)
        if rights is None or not state.still_allows_calls(rights):
            raise RequestError(ASKER_GONE)
        value, outcome = reply_of(button.action, question)
        await interaction.response.edit_message(content=f"{outcome} by <@{interaction.user.id}>.", view=None)
        self._shown_questions.pop(session, None)
        reply = DiscordTurn(session, asker, rights, message, self._points)
        async with self._report_errors(reply):
            await self._run(Reply(value, button.question_id), reply)

    async def run_recorded(self, session: str, answer: Reply, rights: RoutingContext) -> None:
        """Run an answer that another process recorded, and show the result below the question."""
        async with self.lock(session):
            message, _ = self._shown_questions.get(session, (None, ""))
            if message is None:
                raise RequestError(NOT_SHOWN_NOW)
            state = await self.sessions.state(session)
            asker = requester_id(state.packet)
            current = await self._rights_of(asker, message)
            if current is None or not state.still_allows_calls(current):
                raise RequestError(ASKER_GONE)
            reply, has_run = DiscordTurn(session, asker, current, message, self._points), False
            async with self._report_errors(reply):
                await self.close_question(session, ANSWERED_ELSEWHERE)
                await self._run(answer, reply)
                has_run = True
            if not has_run:
                raise RequestError(FAILED_HERE)

    async def _rights_of(
        self, asker: int, place: discord.Interaction[Any] | discord.Message, presser: discord.abc.User | None = None
    ) -> RoutingContext | None:
        """Return the settings for the turns of the user who asked; an approver's own rights do not count."""
        user = presser or getattr(place.channel, "recipient", None)  # the other side of a direct message
        if user is None or user.id != asker:
            guild = place.guild
            try:
                user = None if guild is None else guild.get_member(asker) or await guild.fetch_member(asker)
            except discord.NotFound:
                user = None
        return None if user is None else self._live.config.settings_for(person_of(user, place.channel))

    async def forget(self, person: int, channel: Any) -> int:
        """Delete a user's sessions in a channel, each after its turn has ended; return the number of sessions."""
        sessions = await self._points.sessions_of(person, channel)
        for session in sessions:
            async with self.lock(session):
                await self.close_question(session, DELETED)
                await asyncio.to_thread(self._live.note_tool_changes)  # their records are deleted now
                await self.sessions.forget(session)
        return len(sessions)

    async def close_question(self, session: str, line: str) -> None:
        """Remove the buttons of a session's question, and write `line` above the question."""
        if session in self._shown_questions:
            message, _ = self._shown_questions.pop(session)
            with suppress(*REQUEST_ERRORS):
                if message is not None:
                    await message.edit(content=line, view=None)

    async def _run(self, turn: UserInput, reply: DiscordTurn, shown_id: str = "") -> None:
        running = run_turn(self.sessions, turn, reply.session, reply.rights)
        async with reply.to.channel.typing(), aclosing(running) as events:
            async for event in events:
                match event:
                    case Resuming():
                        reply.notes += [RESUMING]
                    case SideTurnFinished(packet):
                        await self._show_answer(packet, reply)
                        reply.notes, reply.is_over = [], False
                    case Asked(is_known=True) if shown_id:
                        self._shown_questions[reply.session] = None, shown_id
                    case Asked(question, packet):
                        await self._ask(question, packet, reply)
                    case Finished(packet):
                        await self._show_answer(packet, reply)

    async def _show_answer(self, packet: CognitionPacket, reply: DiscordTurn) -> None:
        reply.point = _point_of(packet, reply)
        attachments = (packet.tool_routing or ToolRouting()).attachments
        pictures, notes = await asyncio.to_thread(uploadable_pictures, attachments, self._results, reply.session)
        reply.notes += notes
        await reply.end(packet.messages[-1].text.strip() or "(no answer)")
        await reply.attach(pictures)

    async def _ask(self, question: dict[str, Any], packet: CognitionPacket, reply: DiscordTurn) -> None:
        reply.point = _point_of(packet, reply)
        line = headline(question, requester_id(packet) or reply.asker)
        sent = await reply.send(
            line, view=decision_buttons(question, reply.session.rpartition(":")[2]), **question_parts(question)
        )
        self._shown_questions[reply.session] = sent, str(question.get("question_id"))

    @asynccontextmanager
    async def _report_errors(self, reply: DiscordTurn) -> AsyncIterator[None]:
        """Report a turn's error to the user in one line, so that no turn stops the bot."""
        try:
            yield
        except RequestError as error:
            await reply.end(str(error))
        except ModelError as error:
            log.error("%s: %s", reply.session, error)  # noqa: TRY400  the message is for people
            await reply.end("The language model did not answer; see the bot's log.")
        except asyncio.CancelledError:
            if not reply.is_over:
                await reply.end(STOPPED)
            raise
        except Exception:
            try:
                packet_id = (await self.sessions.state(reply.session)).packet.header.packet_id
            except PacketgateError:
                packet_id = "unknown"
            log.exception("%s: packet %s failed", reply.session, packet_id)
            await reply.end(f"Internal error in packet `{packet_id}`; see the bot's log.")


def _point_of(packet: CognitionPacket, reply: DiscordTurn) -> Point:
    return Point(reply.session, packet.header.packet_id, str(reply.to.channel.id), str(reply.asker))


def _decides(words: str, question: dict[str, Any] | None) -> bool:
    """Whether words are a decision about a question. Raise RequestError for an edit that cannot be parsed."""
    if question is None:
        return False
    return words_reply(words, question) is not words or read_reply(words, asked_calls(question)) is not None
