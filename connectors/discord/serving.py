"""Running the bot until it is stopped."""

import asyncio
import logging
import signal

import aiohttp
import discord

from connectors.discord.bot import PacketBot
from connectors.discord.config import DiscordConfig
from connectors.opening import open_sessions
from graph.settings import Settings
from state.errors import ConfigError

PORTAL = "https://discord.com/developers/applications"


async def serve(settings: Settings, config: DiscordConfig, token: str) -> int:
    """Answer on Discord until the process is told to end; return the exit status.

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
    """Log what happens, never what is said."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("connectors", "discord"):
        logging.getLogger(name).setLevel(logging.INFO)
