"""The Discord client. It passes events of Discord to the other modules."""

import asyncio
import logging
import math
import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import aiohttp
import discord
from discord import app_commands
from discord.ext import commands

from packetgate.connectors.discord.config import DiscordConfig, LiveConfig, person_of
from packetgate.connectors.discord.conversations import DiscordConversations
from packetgate.connectors.discord.messages import MESSAGE_CHARS, is_addressed
from packetgate.connectors.discord.models import ModelChoice
from packetgate.connectors.discord.questions import DecisionButton
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.state.errors import ConfigError, ModelError

log = logging.getLogger(__name__)

INTENTS = discord.Intents(guilds=True, messages=True, message_content=True)
"""Message content is needed for replies that do not mention the bot, and for the messages replied to."""
NOT_ALLOWED = "You may not use this bot here."
MAX_CHOICES = 25
"""Maximum completions that Discord accepts."""
PORTAL = "https://discord.com/developers/applications"
NOBODY_ALLOWED = (
    "no user is allowed, so every message is ignored: add the ids of allowed users to packetgate.toml, for example"
    "\n[discord.allowed]\nusers = [123456789012345678]"
)


class PacketBot(discord.Client):
    """Answers the users that the configuration allows, and ignores all others."""

    def __init__(self, sessions: Sessions, settings: Settings, config: DiscordConfig) -> None:
        super().__init__(intents=INTENTS, allowed_mentions=discord.AllowedMentions.none())
        self._live, self._reloading = LiveConfig(settings, config), asyncio.Lock()
        self._conversations = DiscordConversations(sessions, result_store(settings), self._live)
        self._models = ModelChoice(sessions, settings, self._live)
        self._apply_config()
        self._warned: set[int] = set()
        """Users who were warned about their rate limit."""
        self._running: set[asyncio.Task[None]] = set()
        self._tree = app_commands.CommandTree(self)
        self._tree.error(_report_error)

        @self._tree.command(description="Delete your conversations here")
        async def reset(interaction: discord.Interaction[Any]) -> None:
            await self._run_tracked(self._command(interaction, self._reset))

        @self._tree.command(description="Show the model, or switch to another")
        @app_commands.describe(name="The model to switch to")
        async def model(interaction: discord.Interaction[Any], name: str = "") -> None:
            async def answer(_: object) -> str:
                is_owner = self._live.config.is_owner(person_of(interaction.user, interaction.channel))
                return await self._models.answer(name, is_owner=is_owner)

            await self._run_tracked(self._command(interaction, answer))

        @model.autocomplete("name")
        async def complete(interaction: discord.Interaction[Any], current: str) -> list[app_commands.Choice[str]]:
            labels = self._models.choices if await self._is_allowed(interaction) else ()
            found = [label for label in labels if current.casefold() in label.casefold()]
            return [app_commands.Choice(name=label, value=label) for label in found[:MAX_CHOICES]]

    async def setup_hook(self) -> None:
        """Register the buttons and the slash commands."""
        self.add_dynamic_items(DecisionButton)
        await self._models.apply()
        await self._tree.sync()

    async def on_ready(self) -> None:
        """Log that the bot is ready."""
        log.info("%s is ready on %d servers and in direct messages", self.user, len(self.guilds))

    async def on_message(self, message: discord.Message) -> None:
        """Answer a message to the bot from an allowed user."""
        me = self.user
        if me is None or not is_addressed(message, me):
            return
        await self._reload()
        person = person_of(message.author, message.channel)
        rights = self._live.config.settings_for(person)
        if rights is None:
            log.info("ignored: user %d is not allowed in channel %d", person.user, message.channel.id)
            return
        wait_s = self._limits.update_rate_limit(message)
        if wait_s is None:
            self._warned.discard(person.user)
            notes = [self._live.problem] if self._live.problem and self._live.config.is_owner(person) else []
            await self._run_tracked(self._conversations.answer(message, me, rights, notes))
        elif person.user not in self._warned:
            self._warned.add(person.user)
            await message.reply(f"Too many requests. Please ask again in {math.ceil(wait_s)} seconds.")

    async def decide(self, interaction: discord.Interaction[Any], button: DecisionButton) -> None:
        """Handle a button press. The button may be older than the bot's last restart."""
        await self._reload()
        await self._run_tracked(self._conversations.decide(interaction, button))

    async def close(self) -> None:
        """Stop the running turns, notify their users, and close the client."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await super().close()

    async def _command(
        self, interaction: discord.Interaction[Any], answer: Callable[[discord.Interaction[Any]], Awaitable[str]]
    ) -> None:
        if await self._is_allowed(interaction):
            await interaction.response.defer(ephemeral=True, thinking=True)
            await interaction.followup.send((await answer(interaction))[:MESSAGE_CHARS], ephemeral=True)
        else:
            await interaction.response.send_message(NOT_ALLOWED, ephemeral=True)

    async def _reset(self, interaction: discord.Interaction[Any]) -> str:
        count = await self._conversations.forget(interaction.user.id, interaction.channel)
        return f"Deleted conversations of yours here: {count}."

    async def _is_allowed(self, interaction: discord.Interaction[Any]) -> bool:
        await self._reload()
        channel = interaction.channel
        return channel is not None and self._live.config.settings_for(person_of(interaction.user, channel)) is not None

    async def _reload(self) -> None:
        """Apply a changed file to this event and all later ones."""
        async with self._reloading:  # events stay in order
            if not await asyncio.to_thread(self._live.reload):
                return
            activity = self._apply_config()
            try:
                await self._models.apply()
            except (ConfigError, ModelError) as error:
                log.error("the previous model stays in use: %s", error)  # noqa: TRY400  the message is for people
            with suppress(ConnectionError):  # the next connection shows it
                await self.change_presence(activity=activity)

    def _apply_config(self) -> discord.CustomActivity | None:
        config = self._live.config
        rate = commands.Cooldown(config.rate.turns, config.rate.seconds)
        self._limits = commands.CooldownMapping[discord.Message](rate, lambda message: message.author.id)
        if not config.allowed:
            log.warning(NOBODY_ALLOWED)
        self.activity = activity = discord.CustomActivity(config.status) if config.status else None
        return activity

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
