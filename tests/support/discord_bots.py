"""The real bot with the real client, connected to the stand-in for Discord."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.discord_payloads import ADA
from support.discord_rest import TOKEN
from support.discord_server import DiscordStandIn
from support.fuzzing import as_toml

from packetgate.connectors.discord.bot import PacketBot
from packetgate.connectors.discord.config import load_discord_config
from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.graph.settings import Settings

ADA_ALONE: dict[str, Any] = {"allowed": {"users": [ADA]}}


@dataclass(frozen=True)
class Workshop:
    """The environment of bots: one Discord, one folder and one home."""

    discord: DiscordStandIn
    folder: Path
    home: Path

    @property
    def settings(self) -> Settings:
        config = self.folder / "packetgate.toml"
        return Settings(root=self.folder, home=self.home, config=config if config.exists() else None)

    def configure(self, config: dict[str, Any]) -> None:
        """Write the table `[discord]` below the other tables of the file."""
        file = self.folder / "packetgate.toml"
        others = file.read_text().partition("[discord]")[0] if file.exists() else ""
        file.write_text(others + "[discord]\n" + as_toml(config).decode())

    @asynccontextmanager
    async def bot(self, config: dict[str, Any], sessions: Sessions | None = None) -> AsyncIterator[PacketBot]:
        """Run a bot; without `sessions`, it has the built-in tools and no model."""
        self.configure(config)
        if sessions is None:
            async with open_sessions(self.settings, channel="Discord bot") as opened, self.bot(config, opened) as bot:
                yield bot
            return
        async with PacketBot(sessions, self.settings, load_discord_config(self.settings.config)) as bot:
            bot._connection.guild_ready_timeout = 0.0  # the only server is available immediately
            running = asyncio.create_task(bot.start(TOKEN))
            running.add_done_callback(lambda _: self.discord.tell())
            await self.discord.until(lambda: self.discord.gateway.is_connected or running.done())
            if running.done():
                await running
            await bot.wait_until_ready()
            yield bot
            await bot.close()
            await running
        await self.discord.until(lambda: not self.discord.gateway.is_connected)
