"""Slash commands: `/why` and `/reset`. Only the user sees the reply."""

import io
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import discord
from discord import app_commands
from rich.console import Console

from packetgate.connectors.discord.config import DiscordConfig, person_of
from packetgate.connectors.discord.conversations import DiscordConversations, session_of
from packetgate.connectors.discord.messages import code_block, split_message
from packetgate.connectors.discord.questions import BLOCK_COLUMNS
from packetgate.connectors.rendering import trace_table
from packetgate.state.packet import CognitionPacket

NOT_ALLOWED = "You may not use this bot here."

log = logging.getLogger(__name__)

Interaction = discord.Interaction[Any]


def add_commands(
    tree: app_commands.CommandTree[Any], conversations: DiscordConversations, config: DiscordConfig
) -> None:
    """Register the slash commands."""

    async def why(session: str) -> str:
        return _trace_text((await conversations.sessions.state(session)).packet)

    async def reset(session: str) -> str:
        await conversations.forget(session)
        return "This conversation is deleted."

    def command(reply: Callable[[str], Awaitable[str]]) -> Any:
        async def run(interaction: Interaction) -> None:
            channel = interaction.channel
            if channel is None or config.settings_for(person_of(interaction.user, channel)) is None:
                await interaction.response.send_message(NOT_ALLOWED, ephemeral=True)
                return
            await interaction.response.defer(ephemeral=True, thinking=True)
            for text in split_message(await reply(session_of(channel.id))):
                await interaction.followup.send(text, ephemeral=True)

        return run

    for reply, description in (
        (why, "The trace of the last answer here"),
        (reset, "Delete this conversation"),
    ):
        tree.command(name=reply.__name__, description=description)(command(reply))

    @tree.error
    async def report_error(interaction: Interaction, error: app_commands.AppCommandError) -> None:
        log.error("a command failed in channel %s", interaction.channel_id, exc_info=error)
        send = interaction.followup.send if interaction.response.is_done() else interaction.response.send_message
        await send("Internal error; see the bot's log.", ephemeral=True)


def _trace_text(packet: CognitionPacket) -> str:
    if not packet.content.original_prompt:
        return "No request was made here yet."
    page = io.StringIO()
    console = Console(file=page, width=BLOCK_COLUMNS, no_color=True, markup=False, highlight=False, emoji=False)
    console.print(trace_table(packet))
    return code_block("\n".join(line.rstrip() for line in page.getvalue().splitlines()))
