"""Buttons, forms and slash commands: check who uses them and whether they still apply, and answer."""

import asyncio
import io
import json
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import discord
from discord import app_commands
from rich.console import Console

from packetgate.connectors.discord.config import DiscordConfig, Person
from packetgate.connectors.discord.conversing import LAPSED, NOT_YOURS, Conversations, expiry_of, session_of
from packetgate.connectors.discord.presenting import REMEMBERED, Press, code_block, form, requests_of, split, written
from packetgate.connectors.rendering import trace_table
from packetgate.connectors.turn import Reply
from packetgate.graph.settings import Settings
from packetgate.state.base import now
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.packet import CognitionPacket

PATIENCE_S = 2.0
"""Seconds that a press waits for the session's turn to end; Discord wants an answer within three."""

NOT_ANY_MORE = "This was decided already, or the conversation went on: nothing was done."
NOT_THERE = "Whoever asked this is not here any more, or may not do it any more: nothing was done."


def person_of(user: discord.abc.User, channel: Any) -> Person:
    """Return the user and the channel of a message or press."""
    places = (channel.id, getattr(channel, "parent_id", None))
    return Person(
        user=user.id,
        roles=frozenset(role.id for role in getattr(user, "roles", ())),
        places=tuple(place for place in places if place is not None),
    )


class Decisions:
    """Handles button presses by the questions in the sessions; it keeps no state of its own."""

    def __init__(self, conversations: Conversations, config: DiscordConfig) -> None:
        self._conversations = conversations
        self._config = config

    async def pressed(self, interaction: discord.Interaction[Any], press: Press) -> None:
        """Open a form or resume the turn; only the user who pressed sees why a press is refused."""
        message, channel = interaction.message, interaction.channel
        if message is None or channel is None:
            return
        if not self._config.may_decide(person_of(interaction.user, channel), press.asker):
            await interaction.response.send_message(NOT_YOURS, ephemeral=True)
            return
        try:
            async with AsyncExitStack() as held:
                try:
                    async with asyncio.timeout(PATIENCE_S):
                        await held.enter_async_context(self._conversations.lock(session_of(channel.id)))
                except TimeoutError as error:  # another press, or a new message, is ahead
                    raise RequestError(NOT_ANY_MORE) from error
                await self._decide(interaction, message, press)
        except RequestError as error:
            await interaction.response.send_message(str(error)[:2_000], ephemeral=True)

    async def _decide(self, interaction: discord.Interaction[Any], message: discord.Message, press: Press) -> None:
        session = session_of(message.channel.id)
        state = await self._conversations.sessions.state(session)
        question = state.question
        if question is None or question.get("question_id") != press.key:
            raise RequestError(NOT_ANY_MORE)
        if (lapses := expiry_of(question)) and now() > lapses:
            await self._conversations.questions.remove(session)
            await interaction.response.edit_message(content=LAPSED, view=None)
            return
        if press.action in {"edit", "answer"}:
            await interaction.response.send_modal(form(question, press))
            return
        rights = await self._rights_of(press.asker, interaction)
        if rights is None or not state.may_go_on(rights):
            raise RequestError(NOT_THERE)
        value, done = _reply(press, question, written(interaction.data or {}))
        await interaction.response.edit_message(content=f"{done} by <@{interaction.user.id}>.", view=None)
        await self._conversations.questions.remove(session)
        await self._conversations.reply(Reply(value, press.key), message, press.asker, rights)

    async def _rights_of(self, asker: int, interaction: discord.Interaction[Any]) -> RoutingContext | None:
        """Return the settings for the asker's turns: an approver's own rights do not count."""
        user: discord.abc.User | None = interaction.user
        if interaction.user.id != asker:
            guild = interaction.guild
            try:
                user = None if guild is None else guild.get_member(asker) or await guild.fetch_member(asker)
            except discord.NotFound:
                user = None
        return None if user is None else self._config.context_for(person_of(user, interaction.channel))


def _reply(press: Press, question: dict[str, Any], fields: list[str]) -> tuple[object, str]:
    requests = requests_of(question)
    if press.action in REMEMBERED:
        done = "⛔ Never" if press.action == "never" else "✅ Approved"
        return press.action, f"{done}, and remembered ({press.action})"
    if press.action == "answered":
        decisions, done = [{"type": "respond", "message": "\n".join(fields)}] * len(requests), "💬 Answered"
    elif press.action in {"approve", "reject"}:
        decisions = [{"type": press.action}] * len(requests)
        done = "✅ Approved" if press.action == "approve" else "⛔ Rejected"
    elif len(fields) != len(requests):
        raise RequestError("the form does not fit the question: press Edit again")
    else:
        decisions, done = [_edited(*pair) for pair in zip(requests, fields, strict=True)], "✏️ Edited"
    return {"decisions": decisions}, done


def _edited(request: dict[str, Any], text: str) -> dict[str, Any]:
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


log = logging.getLogger(__name__)

WIDTH = 76
"""Widest line of a code block that the desktop client does not wrap."""

BROKEN = "Something went wrong. The bot's log says what."
NOT_ALLOWED = "You are not among those whom I answer here."

Interaction = discord.Interaction[Any]


def add_commands(
    tree: app_commands.CommandTree[Any], conversations: Conversations, config: DiscordConfig, settings: Settings
) -> None:
    """Register the slash commands."""

    async def answer(interaction: Interaction, text: Callable[[CognitionPacket, RoutingContext], str]) -> None:
        """Answer from the session's last packet, if the user is allowed."""
        channel = interaction.channel
        rights = None if channel is None else config.context_for(person_of(interaction.user, channel))
        if channel is None or rights is None:
            await interaction.response.send_message(NOT_ALLOWED, ephemeral=True)
            return
        await interaction.response.defer(ephemeral=True, thinking=True)
        state = await conversations.sessions.state(session_of(channel.id))
        for piece in split(text(state.packet, rights)):
            await interaction.followup.send(piece, ephemeral=True)

    def answered_by(text: Callable[[CognitionPacket, RoutingContext], str]) -> Any:
        async def command(interaction: Interaction) -> None:
            await answer(interaction, text)

        return command

    for name, about, text in (
        ("tools", "What I can use here", tools_text),
        ("why", "How the last answer here came about, stage by stage", lambda packet, _: _why_text(packet)),
        ("model", "Which models decide and answer", lambda *_: model_text(settings)),
    ):
        tree.command(name=name, description=about)(answered_by(text))

    @tree.command(name="reset", description="Forget this conversation")
    async def reset(interaction: Interaction) -> None:
        channel = interaction.channel
        if channel is None or config.context_for(person_of(interaction.user, channel)) is None:
            await interaction.response.send_message(NOT_ALLOWED, ephemeral=True)
            return
        await interaction.response.defer(ephemeral=True, thinking=True)
        await conversations.forget(session_of(channel.id))
        await interaction.followup.send("I have forgotten this conversation.", ephemeral=True)

    @tree.error
    async def broken(interaction: Interaction, error: app_commands.AppCommandError) -> None:
        log.error("a command broke in channel %s", interaction.channel_id, exc_info=error)
        if interaction.response.is_done():
            await interaction.followup.send(BROKEN, ephemeral=True)
        else:
            await interaction.response.send_message(BROKEN, ephemeral=True)


def tools_text(packet: CognitionPacket, rights: RoutingContext) -> str:
    """Return the tools that the session's last turn knew, and which kinds of calls are enabled."""
    names = [name for name in packet.context.available_mcp_tools if rights.allows_tool(name)]
    shown = {entry.tool_name for entry in packet.context.palette}
    switches = ", ".join(
        f"{what} {'after approval' if on else 'only as a dry run'}"
        for what, on in (("writes", rights.allow_write_tools), ("commands", rights.allow_execute_tools))
    )
    if not rights.enabled:
        return "No tools are to be used here."
    if not names:
        only = f" Only these may be used here: `{', '.join(rights.allowed_tools)}`." if rights.allowed_tools else ""
        return f"I look at the tools when a request needs one, and here none has yet.{only}\nFor you here: {switches}."
    listed = "\n".join(f"{'*' if name in shown else ' '} {name}" for name in names)
    if packet.context.available_more and len(names) == len(packet.context.available_mcp_tools):
        listed += f"\n  and {packet.context.available_more:,} more"
    return f"{code_block(listed)}\n`*` was on the last turn's palette. For you here: {switches}."


def _why_text(packet: CognitionPacket) -> str:
    if not packet.content.original_prompt:
        return "Nothing has been asked here yet."
    page = io.StringIO()
    Console(file=page, width=WIDTH, no_color=True, markup=False, highlight=False, emoji=False).print(
        trace_table(packet)
    )
    return code_block("\n".join(line.rstrip() for line in page.getvalue().splitlines()))


def model_text(settings: Settings) -> str:
    """Return the lite and prime models; of a model file only the name."""
    if settings.url:
        return f"The models are those of the server's assistant `{settings.assistant}`."
    lite, prime = (_named(settings.lite), _named(settings.prime))
    return f"Intent and selection (lite): `{lite}`\nReview and answer (prime): `{prime}`"


def _named(model: str) -> str:
    kind, _, name = model.partition(":")
    return f"{kind}:{Path(name).name}" if kind == "llamacpp" else model
