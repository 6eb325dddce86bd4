"""`packetgate discord` as a process that takes the stand-in for Discord."""

import asyncio
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.command_line import COMMAND, CommandLine
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


async def start(cli: CommandLine, discord: DiscordStandIn, folder: Path, *args: str, **variables: str) -> Process:
    """Start the command; `folder` is one of its own."""
    _point(folder, discord)
    environment = {**cli.environment, "PYTHONPATH": str(folder), "DISCORD_TOKEN": TOKEN, **variables}
    return await asyncio.create_subprocess_exec(
        str(COMMAND), "discord", *args, cwd=cli.folder, env=environment, stdout=PIPE, stderr=PIPE
    )


def _point(folder: Path, discord: DiscordStandIn) -> None:
    folder.mkdir()
    patch = POINTED_HERE.format(api=f"{discord.url}{API}", gateway=f"{discord.gateway.url}/gateway")
    (folder / "sitecustomize.py").write_text(patch)


@asynccontextmanager
async def running(
    cli: CommandLine, discord: DiscordStandIn, folder: Path, *args: str, **variables: str
) -> AsyncIterator[Process]:
    """Run the command until the end of the block; then it is told to end, and does."""
    process = await start(cli, discord, folder, *args, **variables)
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
