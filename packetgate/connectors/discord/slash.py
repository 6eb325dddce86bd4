"""The slash commands: /tools, /why, /reset, /model. What they answer is seen only by who asked."""

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import discord
from discord import app_commands
from rich.console import Console

from packetgate.connectors.discord.config import DiscordConfig
from packetgate.connectors.discord.conversing import Conversations, session_of
from packetgate.connectors.discord.deciding import person_of
from packetgate.connectors.discord.splitting import code_block, split
from packetgate.connectors.rendering import journey
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket

log = logging.getLogger(__name__)

WIDTH = 76
"""Characters of a line in a code block that a desktop shows without wrapping."""

BROKEN = "Something went wrong. The bot's log says what."
NOT_ALLOWED = "You are not among those whom I answer here."

Interaction = discord.Interaction[Any]


def add_commands(
    tree: app_commands.CommandTree[Any], conversations: Conversations, config: DiscordConfig, settings: Settings
) -> None:
    """Add the commands to a tree."""

    async def answer(interaction: Interaction, text: Callable[[CognitionPacket, RoutingContext], str]) -> None:
        """Answer from the session's last packet, if the person may ask."""
        channel = interaction.channel
        rights = None if channel is None else config.context_for(person_of(interaction.user, channel))
        if channel is None or rights is None:
            await interaction.response.send_message(NOT_ALLOWED, ephemeral=True)
            return
        await interaction.response.defer(ephemeral=True, thinking=True)
        state = await conversations.sessions.state(session_of(channel.id))
        for piece in split(text(state.packet, rights)):
            await interaction.followup.send(piece, ephemeral=True)

    @tree.command(name="tools", description="What I can use here")
    async def tools(interaction: Interaction) -> None:
        await answer(interaction, tools_text)

    @tree.command(name="why", description="How the last answer here came about, stage by stage")
    async def why(interaction: Interaction) -> None:
        await answer(interaction, lambda packet, _: why_text(packet))

    @tree.command(name="model", description="Which models decide and answer")
    async def model(interaction: Interaction) -> None:
        await answer(interaction, lambda *_: model_text(settings))

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
    """Return what may be used, as far as the session's last turn that needed a tool has seen it."""
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


def why_text(packet: CognitionPacket) -> str:
    """Return the last packet's journey as a table."""
    if not packet.content.original_prompt:
        return "Nothing has been asked here yet."
    page = io.StringIO()
    Console(file=page, width=WIDTH, no_color=True, markup=False, highlight=False, emoji=False).print(journey(packet))
    return code_block("\n".join(line.rstrip() for line in page.getvalue().splitlines()))


def model_text(settings: Settings) -> str:
    """Return who plays lite and prime; of a file, only its name."""
    if settings.url:
        return f"The models are those of the server's assistant `{settings.assistant}`."
    lite, prime = (_named(settings.lite), _named(settings.prime))
    return f"Intent and selection (lite): `{lite}`\nReview and answer (prime): `{prime}`"


def _named(model: str) -> str:
    kind, _, name = model.partition(":")
    return f"{kind}:{Path(name).name}" if kind == "llamacpp" else model
