"""`packetgate discord` as a process that connects to the stand-in for Discord."""

import asyncio
import os
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
"""Python runs this as `sitecustomize.py`."""


async def refused(cli: CommandLine, discord: DiscordStandIn, folder: Path, **variables: str) -> Outcome:
    """Run a command that exits by itself; `folder` must be new."""
    return await asyncio.to_thread(cli.run, "discord", **{**_pointed(discord, folder), **variables})


@asynccontextmanager
async def running(cli: CommandLine, discord: DiscordStandIn, folder: Path, **variables: str) -> AsyncIterator[Process]:
    """Run the command until the end of the block, and check that it exits without an error."""
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
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path, "DISCORD_TOKEN": TOKEN}
