"""Handle button presses and forms: check the user and whether the question is still open, and resume the turn."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import discord

from packetgate.connectors.discord.config import DiscordConfig, Person
from packetgate.connectors.discord.conversations import DiscordConversations, session_of
from packetgate.connectors.discord.questions import (
    NOT_AUTHORISED,
    REMEMBERED_ANSWERS,
    Action,
    DecisionForm,
    asker_of,
    calls_of,
    has_expired,
)
from packetgate.connectors.turn import Reply
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError

PRESS_PATIENCE_S = 2.0
"""Seconds that a press waits for the session's turn to end; Discord requires an answer within three seconds."""
EXPIRED = "⌛ Expired without an answer: nothing was run."
NOT_OPEN = "This question is no longer open: nothing was run."
ASKER_GONE = "The person who asked has left or lost the permission: nothing was run."


def person_of(user: discord.abc.User, channel: Any) -> Person:
    """Return the user and the channel of a message or press."""
    places = (channel.id, getattr(channel, "parent_id", None))
    return Person(
        user=user.id,
        roles=frozenset(role.id for role in getattr(user, "roles", ())),
        places=tuple(place for place in places if place is not None),
    )


class Approvals:
    """Handles button presses. All state is in the open questions of the sessions."""

    def __init__(self, conversations: DiscordConversations, config: DiscordConfig) -> None:
        self._conversations, self._config = conversations, config

    async def decide(
        self, interaction: discord.Interaction[Any], action: Action, question_id: str, fields: Sequence[str]
    ) -> None:
        """Open a form or resume the turn; only the user who pressed sees why a press is refused."""
        message = interaction.message
        if message is None:
            return
        session = session_of(message.channel.id)
        try:
            async with AsyncExitStack() as held:
                try:
                    async with asyncio.timeout(PRESS_PATIENCE_S):
                        await held.enter_async_context(self._conversations.lock(session))
                except TimeoutError as error:  # another press or a new message holds the session's lock
                    raise RequestError(NOT_OPEN) from error
                await self._decide(interaction, message, action, question_id, fields)
        except RequestError as error:
            await interaction.response.send_message(str(error)[:2_000], ephemeral=True)

    async def _decide(
        self,
        interaction: discord.Interaction[Any],
        message: discord.Message,
        action: Action,
        question_id: str,
        fields: Sequence[str],
    ) -> None:
        session = session_of(message.channel.id)
        state = await self._conversations.sessions.state(session)
        question, asker = state.question, asker_of(state.packet)
        if question is None or question.get("question_id") != question_id:
            raise RequestError(NOT_OPEN)
        if not self._config.may_decide(person_of(interaction.user, interaction.channel), asker):
            raise RequestError(NOT_AUTHORISED)
        if has_expired(question):
            await interaction.response.edit_message(content=EXPIRED, view=None)
            return
        if action in {"edit", "answer"} and not fields:
            await interaction.response.send_modal(DecisionForm(question, action))
            return
        rights = await self._rights_of(asker, interaction)
        if rights is None or not state.still_allows_calls(rights):
            raise RequestError(ASKER_GONE)
        value, outcome = _reply(action, question, fields)
        await interaction.response.edit_message(content=f"{outcome} by <@{interaction.user.id}>.", view=None)
        await self._conversations.reply(Reply(value, question_id), message, asker, rights)

    async def _rights_of(self, asker: int, interaction: discord.Interaction[Any]) -> RoutingContext | None:
        """Return the settings for the turns of the user who asked; an approver's own rights do not count."""
        user: discord.abc.User | None = interaction.user
        if interaction.user.id != asker:
            guild = interaction.guild
            try:
                user = None if guild is None else guild.get_member(asker) or await guild.fetch_member(asker)
            except discord.NotFound:
                user = None
        return None if user is None else self._config.settings_for(person_of(user, interaction.channel))


def _reply(action: Action, question: dict[str, Any], fields: Sequence[str]) -> tuple[object, str]:
    """Return the reply of a press or a form, and its description for the message."""
    if action in REMEMBERED_ANSWERS:
        return action, f"{'⛔ Never' if action == 'never' else '✅ Approved'}, and remembered ({action})"
    calls = calls_of(question)
    match action:
        case "answer":
            count = len(question["action_requests"])
            return {"decisions": [{"type": "respond", "message": fields[0]}] * count}, "💬 Answered"
        case "edit":
            edits = [_edited(call, text) for call, text in zip(calls, fields, strict=True)]
            return {"decisions": edits}, "✏️ Edited"
    outcome = "✅ Approved" if action == "approve" else "⛔ Rejected"
    return {"decisions": [{"type": action}] * len(calls)}, outcome


def _edited(call: dict[str, Any], text: str) -> dict[str, Any]:
    if not text.strip():
        return {"type": "reject"}
    try:
        args = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{call['name']}: not JSON: {error}. Press Edit again") from error
    if not isinstance(args, dict):
        raise RequestError(f"{call['name']}: arguments are a JSON object such as {{}}. Press Edit again")
    if args == call["args"]:
        return {"type": "approve"}
    return {"type": "edit", "edited_action": {"name": call["name"], "args": args}}
