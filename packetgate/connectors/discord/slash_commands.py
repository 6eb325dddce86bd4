"""Slash commands: `/tools`, `/why` and `/reset`. Only the user sees the reply."""

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
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket

NOT_ALLOWED = "You may not use this bot here."

log = logging.getLogger(__name__)

Interaction = discord.Interaction[Any]


def add_commands(
    tree: app_commands.CommandTree[Any], conversations: DiscordConversations, config: DiscordConfig
) -> None:
    """Register the slash commands."""

    async def tools(session: str, rights: RoutingContext) -> str:
        return tools_text((await conversations.sessions.state(session)).packet, rights)

    async def why(session: str, _rights: RoutingContext) -> str:
        return _trace_text((await conversations.sessions.state(session)).packet)

    async def reset(session: str, _rights: RoutingContext) -> str:
        await conversations.forget(session)
        return "This conversation is deleted."

    def command(reply: Callable[[str, RoutingContext], Awaitable[str]]) -> Any:
        async def run(interaction: Interaction) -> None:
            channel = interaction.channel
            rights = None if channel is None else config.settings_for(person_of(interaction.user, channel))
            if channel is None or rights is None:
                await interaction.response.send_message(NOT_ALLOWED, ephemeral=True)
                return
            await interaction.response.defer(ephemeral=True, thinking=True)
            for text in split_message(await reply(session_of(channel.id), rights)):
                await interaction.followup.send(text, ephemeral=True)

        return run

    for reply, description in (
        (tools, "The tools that may be used here"),
        (why, "The trace of the last answer here"),
        (reset, "Delete this conversation"),
    ):
        tree.command(name=reply.__name__, description=description)(command(reply))

    @tree.error
    async def report_error(interaction: Interaction, error: app_commands.AppCommandError) -> None:
        log.error("a command failed in channel %s", interaction.channel_id, exc_info=error)
        send = interaction.followup.send if interaction.response.is_done() else interaction.response.send_message
        await send("Internal error; see the bot's log.", ephemeral=True)


def tools_text(packet: CognitionPacket, rights: RoutingContext) -> str:
    """Return a text with the tools of the session's last turn and the user's rights."""
    if not rights.enabled:
        return "No tools may be used here."
    switches = ", ".join(
        f"{what} {'after approval' if on else 'only as a dry run'}"
        for what, on in (("writes", rights.allow_write_tools), ("commands", rights.allow_execute_tools))
    )
    names = [name for name in packet.context.available_mcp_tools if rights.allows_tool(name)]
    if not names:
        only = f" Only these may be used here: `{', '.join(rights.allowed_tools)}`." if rights.allowed_tools else ""
        return f"The tools are listed after the first request that needs one.{only}\nYour rights here: {switches}."
    palette = {entry.tool_name for entry in packet.context.palette}
    listed = "\n".join(f"{'*' if name in palette else ' '} {name}" for name in names)
    if packet.context.available_more and len(names) == len(packet.context.available_mcp_tools):
        listed += f"\n  and {packet.context.available_more:,} more"
    return f"{code_block(listed)}\n`*` marks the palette of the last turn. Your rights here: {switches}."


def _trace_text(packet: CognitionPacket) -> str:
    if not packet.content.original_prompt:
        return "No request was made here yet."
    page = io.StringIO()
    console = Console(file=page, width=BLOCK_COLUMNS, no_color=True, markup=False, highlight=False, emoji=False)
    console.print(trace_table(packet))
    return code_block("\n".join(line.rstrip() for line in page.getvalue().splitlines()))
