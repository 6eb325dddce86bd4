"""The Discord client: it dispatches Discord's events to the other modules and runs until stopped."""

import asyncio
import logging
import math
import signal
from collections.abc import Coroutine, Mapping
from typing import Any

import aiohttp
import discord
from discord import app_commands
from discord.ext import commands

from packetgate.connectors.discord.config import NOBODY, DiscordConfig
from packetgate.connectors.discord.conversing import Conversations, OpenQuestion, OpenQuestions
from packetgate.connectors.discord.interactions import Decisions, add_commands, person_of
from packetgate.connectors.discord.messages import UNSENT, is_addressed
from packetgate.connectors.discord.presenting import Press
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.errors import ConfigError
from packetgate.state.printing import counted

log = logging.getLogger(__name__)

INTENTS = discord.Intents(guilds=True, messages=True, message_content=True)
"""Message content is needed for replies that do not mention the bot, and for the messages replied to."""

PORTAL = "https://discord.com/developers/applications"


class PacketBot(discord.Client):
    """Answers the users that the configuration allows, and ignores all others."""

    def __init__(self, sessions: Sessions, settings: Settings, config: DiscordConfig) -> None:
        super().__init__(intents=INTENTS, allowed_mentions=discord.AllowedMentions.none())
        self._config = config
        self._questions = OpenQuestions(settings.home / "discord-questions.json", self._mark)
        self._conversations = Conversations(sessions, self._questions, result_store(settings))
        self._decisions = Decisions(self._conversations, config)
        rate = commands.Cooldown(config.rate.turns, config.rate.seconds)
        self._limits = commands.CooldownMapping[discord.Message](rate, lambda message: message.author.id)
        self._told_to_wait: set[int] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._tree = app_commands.CommandTree(self)
        add_commands(self._tree, self._conversations, config, settings)

    async def setup_hook(self) -> None:
        """Restore open questions and register the slash commands."""
        await self._questions.load()
        await self._tree.sync()
        if not self._config.allowed:
            log.warning(NOBODY)

    async def on_ready(self) -> None:
        """Log that the bot is ready."""
        log.info("%s listens in %s and to direct messages", self.user, counted(len(self.guilds), "server"))

    async def on_message(self, message: discord.Message) -> None:
        """Answer a message to the bot from an allowed user."""
        me = self.user
        if me is None or not is_addressed(message, me):
            return
        person = person_of(message.author, message.channel)
        rights = self._config.context_for(person)
        if rights is None:
            log.info("passed over: user %d is not allowed in channel %d", person.user, message.channel.id)
            return
        wait = self._limits.update_rate_limit(message)
        if wait is None:
            self._told_to_wait.discard(person.user)
            await self._run(self._conversations.hear(message, me, rights))
        elif person.user not in self._told_to_wait:
            self._told_to_wait.add(person.user)
            await message.reply(f"That was a lot at once. Please ask again in {math.ceil(wait)} seconds.")

    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        """Handle a button press, also on a question from before the last restart."""
        data: Mapping[str, Any] = interaction.data or {}
        press = Press.of(data.get("custom_id"))
        if press is not None:
            await self._run(self._decisions.pressed(interaction, press))

    async def close(self) -> None:
        """Stop the running turns, tell their users, and close the client."""
        self._questions.stop()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await super().close()

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await task

    async def _mark(self, question: OpenQuestion, line: str) -> None:
        message = self.get_partial_messageable(question.channel).get_partial_message(question.message)
        try:
            await message.edit(content=line, view=None)
        except UNSENT as error:
            log.warning("question %d in channel %d cannot be marked: %s", message.id, question.channel, error)


async def serve(settings: Settings, config: DiscordConfig, token: str) -> int:
    """Answer on Discord until a signal ends it; return the exit status.

    Raises:
        ConfigError: Discord does not let the bot in.
        ConfigError, ModelError: something in the settings cannot be used.
    """
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # it does not speak
    _log_plainly()
    async with open_sessions(settings) as sessions, PacketBot(sessions, settings, config) as bot:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: loop.create_task(bot.close()))
        try:
            await bot.login(token)
            await bot.connect()
        except discord.LoginFailure as error:
            raise ConfigError(f"DISCORD_TOKEN: Discord does not know it: copy it anew at {PORTAL}") from error
        except discord.PrivilegedIntentsRequired as error:
            raise ConfigError(f"switch on the bot's Message Content Intent at {PORTAL}, under Bot") from error
        except (aiohttp.ClientConnectionError, discord.DiscordServerError) as error:
            raise ConfigError(f"Discord cannot be reached ({type(error).__name__}): try again later") from error
    return 0


def _log_plainly() -> None:
    """Log events, never message texts."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("packetgate.connectors", "discord"):
        logging.getLogger(name).setLevel(logging.INFO)
