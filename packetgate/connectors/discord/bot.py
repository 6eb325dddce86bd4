"""The Discord client. It passes events of Discord to the other modules."""

import asyncio
import logging
import math
import signal
from collections.abc import Coroutine
from typing import Any

import aiohttp
import discord
from discord import app_commands
from discord.ext import commands

from packetgate.connectors.discord.config import DiscordConfig, person_of
from packetgate.connectors.discord.conversations import DiscordConversations, session_of
from packetgate.connectors.discord.messages import is_addressed
from packetgate.connectors.discord.questions import Action, DecisionButton
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.errors import ConfigError

log = logging.getLogger(__name__)

INTENTS = discord.Intents(guilds=True, messages=True, message_content=True)
"""Message content is needed for replies that do not mention the bot, and for the messages replied to."""
NOT_ALLOWED = "You may not use this bot here."
PORTAL = "https://discord.com/developers/applications"
NOBODY_ALLOWED = (
    "no user is allowed, so every message is ignored: add the ids of allowed users to packetgate.toml, for example"
    "\n[discord.allowed]\nusers = [123456789012345678]"
)


class PacketBot(discord.Client):
    """Answers the users that the configuration allows, and ignores all others."""

    def __init__(self, sessions: Sessions, settings: Settings, config: DiscordConfig) -> None:
        super().__init__(intents=INTENTS, allowed_mentions=discord.AllowedMentions.none())
        self._config = config
        self._conversations = DiscordConversations(sessions, result_store(settings), config)
        rate = commands.Cooldown(config.rate.turns, config.rate.seconds)
        self._limits = commands.CooldownMapping[discord.Message](rate, lambda message: message.author.id)
        self._warned: set[int] = set()
        """Users who were warned about their rate limit."""
        self._running: set[asyncio.Task[None]] = set()
        self._tree = app_commands.CommandTree(self)
        self._tree.error(_report_error)

        @self._tree.command(description="Delete this conversation")
        async def reset(interaction: discord.Interaction[Any]) -> None:
            await self._run_tracked(self._reset(interaction))

    async def setup_hook(self) -> None:
        """Register the buttons and the slash commands."""
        self.add_dynamic_items(DecisionButton)
        await self._tree.sync()
        if not self._config.allowed:
            log.warning(NOBODY_ALLOWED)

    async def on_ready(self) -> None:
        """Log that the bot is ready."""
        log.info("%s is ready on %d servers and in direct messages", self.user, len(self.guilds))

    async def on_message(self, message: discord.Message) -> None:
        """Answer a message to the bot from an allowed user."""
        me = self.user
        if me is None or not is_addressed(message, me):
            return
        person = person_of(message.author, message.channel)
        rights = self._config.settings_for(person)
        if rights is None:
            log.info("ignored: user %d is not allowed in channel %d", person.user, message.channel.id)
            return
        wait_s = self._limits.update_rate_limit(message)
        if wait_s is None:
            self._warned.discard(person.user)
            await self._run_tracked(self._conversations.answer(message, me, rights))
        elif person.user not in self._warned:
            self._warned.add(person.user)
            await message.reply(f"Too many requests. Please ask again in {math.ceil(wait_s)} seconds.")

    async def decide(self, interaction: discord.Interaction[Any], action: Action, question_id: str) -> None:
        """Handle a button press. The button may be older than the bot's last restart."""
        await self._run_tracked(self._conversations.decide(interaction, action, question_id))

    async def close(self) -> None:
        """Stop the running turns, notify their users, and close the client."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await super().close()

    async def _reset(self, interaction: discord.Interaction[Any]) -> None:
        channel = interaction.channel
        if channel is None or self._config.settings_for(person_of(interaction.user, channel)) is None:
            await interaction.response.send_message(NOT_ALLOWED, ephemeral=True)
            return
        await interaction.response.defer(ephemeral=True, thinking=True)
        await self._conversations.forget(session_of(channel.id))
        await interaction.followup.send("This conversation is deleted.", ephemeral=True)

    async def _run_tracked(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await task


async def _report_error(interaction: discord.Interaction[Any], error: app_commands.AppCommandError) -> None:
    log.error("a command failed in channel %s", interaction.channel_id, exc_info=error)
    send = interaction.followup.send if interaction.response.is_done() else interaction.response.send_message
    await send("Internal error; see the bot's log.", ephemeral=True)


async def run_bot(settings: Settings, config: DiscordConfig, token: str) -> int:
    """Answer on Discord until stopped; return the exit status. Raise ConfigError if Discord refuses."""
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # the bot has no voice
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("packetgate.connectors", "discord"):
        logging.getLogger(name).setLevel(logging.INFO)  # these loggers log events, never message texts
    async with open_sessions(settings, channel="Discord bot") as sessions, PacketBot(sessions, settings, config) as bot:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: loop.create_task(bot.close()))
        try:
            await bot.login(token)
            await bot.connect()
        except discord.LoginFailure as error:
            raise ConfigError(
                f"Discord rejects the token in DISCORD_TOKEN: copy the token again from {PORTAL}"
            ) from error
        except discord.PrivilegedIntentsRequired as error:
            raise ConfigError(
                f"the bot lacks the Message Content Intent: switch it on at {PORTAL}, under Bot"
            ) from error
        except (aiohttp.ClientConnectionError, discord.DiscordServerError) as error:
            raise ConfigError(f"Discord cannot be reached ({type(error).__name__}): try again later") from error
    return 0
