"""`packetgate discord` as a process that takes the stand-in for Discord."""

import asyncio
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.command_line import COMMAND, CommandLine, Outcome
from support.discord_rest import API, TOKEN
from support.discord_server import DiscordStandIn

POINTED_HERE = """
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

Route.BASE = {api!r}
DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL({gateway!r})
"""
"""What Python runs before anything else, where it finds it on its path."""


async def refused(cli: CommandLine, discord: DiscordStandIn, folder: Path, **variables: str) -> Outcome:
    """Run the command, which ends by itself; `folder` is one of its own."""
    return await asyncio.to_thread(cli.run, "discord", **{**_pointed(discord, folder), **variables})


@asynccontextmanager
async def running(cli: CommandLine, discord: DiscordStandIn, folder: Path, **variables: str) -> AsyncIterator[Process]:
    """Run the command, truly started, until the end of the block; then it is told to end, and does."""
    environment = {**cli.environment, **_pointed(discord, folder), **variables}
    process = await asyncio.create_subprocess_exec(
        str(COMMAND), "discord", cwd=cli.folder, env=environment, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def _pointed(discord: DiscordStandIn, folder: Path) -> dict[str, str]:
    folder.mkdir()
    patch = POINTED_HERE.format(api=f"{discord.url}{API}", gateway=f"{discord.gateway.url}/gateway")
    (folder / "sitecustomize.py").write_text(patch)
    return {"PYTHONPATH": str(folder), "DISCORD_TOKEN": TOKEN}
