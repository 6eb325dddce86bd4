"""Buttons and forms: who presses, whether it still matters, and what it says to the turn that waits."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import discord

from packetgate.connectors.asking import Reply
from packetgate.connectors.discord.config import DiscordConfig, Person
from packetgate.connectors.discord.conversing import NOT_YOURS, Conversations, session_of
from packetgate.connectors.discord.presenting import Press, form, requests_of, written
from packetgate.connectors.discord.questions import LAPSED, expiry_of
from packetgate.connectors.sessions import SessionState
from packetgate.state.base import now
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError

PATIENCE_S = 2.0
"""Seconds for which a press waits for the session's turn to end: Discord wants an answer within three."""

NOT_ANY_MORE = "This was decided already, or the conversation went on: nothing was done."
NOT_THERE = "Whoever asked this is not here any more, or may not do it any more: nothing was done."


def person_of(user: discord.abc.User, channel: Any) -> Person:
    """Return who speaks, and where."""
    places = (channel.id, getattr(channel, "parent_id", None))
    return Person(
        user=user.id,
        roles=frozenset(role.id for role in getattr(user, "roles", ())),
        places=tuple(place for place in places if place is not None),
    )


class Decisions:
    """What is pressed on questions, by the questions that the sessions hold: it needs no memory of its own."""

    def __init__(self, conversations: Conversations, config: DiscordConfig) -> None:
        self._conversations = conversations
        self._config = config

    async def pressed(self, interaction: discord.Interaction[Any], press: Press) -> None:
        """Open a form, or go on with the turn. What does not count is told to whoever pressed, and to nobody else."""
        message, channel = interaction.message, interaction.channel
        if message is None or channel is None:
            return
        if not self._config.may_decide(person_of(interaction.user, channel), press.asker):
            await _note(interaction, NOT_YOURS)
            return
        session = session_of(channel.id)
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await held.enter_async_context(self._conversations.lock(session))
            except TimeoutError:  # another press, or a new message, is ahead
                await _note(interaction, NOT_ANY_MORE)
                return
            state = await self._conversations.sessions.state(session)
            question = state.question
            if question is None or question.get("question_id") != press.key:
                await _note(interaction, NOT_ANY_MORE)
            elif (lapses := expiry_of(question)) and now() > lapses:
                await self._conversations.questions.remove(session)
                await interaction.response.edit_message(content=LAPSED, view=None)
            elif press.action in {"edit", "answer"}:
                await interaction.response.send_modal(form(question, press))
            else:
                await self._decide(interaction, message, press, state)

    async def _decide(
        self, interaction: discord.Interaction[Any], message: discord.Message, press: Press, state: SessionState
    ) -> None:
        rights = await self._rights_of(press.asker, interaction)
        if rights is None or not state.may_go_on(rights):
            await _note(interaction, NOT_THERE)
            return
        try:
            value, told = _reply(press, state.question or {}, written(interaction.data or {}))
        except RequestError as error:
            await _note(interaction, str(error))
            return
        await interaction.response.edit_message(content=f"{told} by <@{interaction.user.id}>.", view=None)
        await self._conversations.questions.remove(session_of(message.channel.id))
        await self._conversations.reply(Reply(value, press.key), message, press.asker, rights)

    async def _rights_of(self, asker: int, interaction: discord.Interaction[Any]) -> RoutingContext | None:
        """Return the settings of the asker's turns there: whoever presses lends them no rights."""
        user: discord.abc.User | None = interaction.user
        if interaction.user.id != asker:
            guild = interaction.guild
            try:
                user = None if guild is None else guild.get_member(asker) or await guild.fetch_member(asker)
            except discord.NotFound:
                user = None
        return None if user is None else self._config.context_for(person_of(user, interaction.channel))


def _reply(press: Press, question: dict[str, Any], fields: list[str]) -> tuple[object, str]:
    """Return what a press says to the turn, and how that is told.

    Raises:
        RequestError: what was written cannot be used.
    """
    requests = requests_of(question)
    match press.action:
        case "approve":
            decisions, told = [{"type": "approve"}] * len(requests), "✅ Approved"
        case "reject":
            decisions, told = [{"type": "reject"}] * len(requests), "⛔ Rejected"
        case "session" | "always" | "never":
            return (
                press.action,
                f"{'⛔ Never' if press.action == 'never' else '✅ Approved'}, and remembered ({press.action})",
            )
        case "answered":
            decisions = [{"type": "respond", "message": "\n".join(fields)}] * len(requests)
            told = "💬 Answered"
        case _:
            if len(fields) != len(requests):
                raise RequestError("the form does not fit the question: press Edit again")
            decisions = [_edited(request, text) for request, text in zip(requests, fields, strict=True)]
            told = "✏️ Edited"
    return {"decisions": decisions}, told


def _edited(request: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the decision on one call: its new arguments, the old ones, or, where nothing was left of them, no."""
    if not text.strip():
        return {"type": "reject"}
    try:
        args = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{request['name']}: not JSON: {error}. Press Edit again") from error
    if not isinstance(args, dict):
        raise RequestError(f"{request['name']}: arguments are a JSON object such as {{}}. Press Edit again")
    if args == request.get("args"):
        return {"type": "approve"}
    return {"type": "edit", "edited_action": {"name": request["name"], "args": args}}


async def _note(interaction: discord.Interaction[Any], text: str) -> None:
    """Tell it to the one who pressed and to nobody else."""
    await interaction.response.send_message(text[:2_000], ephemeral=True)
