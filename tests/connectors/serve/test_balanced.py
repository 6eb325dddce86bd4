"""Two machines behind nginx with deploy/nginx.conf: each serves any request, and a dead machine gets none."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import openai
import pytest
from support.booking import Hotel
from support.command_line import CommandLine
from support.endpoints import Chat, Started, started
from support.mcp_servers import until
from support.programs import require

from packetgate.connectors.serve.conversations import is_question_message

pytestmark = pytest.mark.slow
CONFIG = Path(__file__).parents[3] / "deploy/nginx.conf"
TOKEN, NAME = "a-token-of-the-tests", "packetgate.example"
BEFORE, AFTER = 10, 4
"""Numbers of conversations before and after the kill of a machine."""


@asynccontextmanager
async def balanced(*machines: Started) -> AsyncIterator[openai.AsyncOpenAI]:
    """Run nginx on a socket in front of the machines, and yield a client of nginx."""
    with tempfile.TemporaryDirectory(prefix="nginx-") as name:  # a socket's path is limited to about 100 characters
        folder = Path(name)
        await asyncio.to_thread(folder.chmod, 0o755)  # nginx's workers run as another user
        config = CONFIG.read_text().replace("/tmp/", f"{folder}/").replace("8080", f"unix:{folder}/socket")
        for number, machine in enumerate(machines, 1):
            config = config.replace(f"serve-{number}:2026", machine.url.split("/")[2])
        (folder / "nginx.conf").write_text(config)
        command = [require("nginx"), "-e", "stderr", "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        try:
            await until(lambda: process.returncode is not None or (folder / "socket").exists())
            assert process.returncode is None, await process.communicate()
            http = httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=str(folder / "socket")), timeout=600)
            url = f"http://{NAME}/v1"
            async with openai.AsyncOpenAI(base_url=url, api_key=TOKEN, http_client=http, max_retries=0) as client:
                yield client
        finally:
            process.terminate()
            await process.communicate()


async def test_conversations_continue_on_either_machine(cli: CommandLine, tmp_path: Path, postgres: str) -> None:
    hotel = Hotel(tmp_path)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    other = CommandLine(folder, tmp_path / "home elsewhere")
    where = {"PACKETGATE_DATABASE_URL": postgres, "PACKETGATE_SERVE_TOKEN": TOKEN}
    options = ("--allow-writes", "--allow-host", NAME, "--mcp-config")
    async with (
        started(cli, *options, hotel.configure(cli.folder), **where) as here,
        started(other, *options, hotel.configure(other.folder), **where) as there,
        balanced(here, there) as client,
    ):

        async def book(room: str) -> None:
            chat = Chat(client)
            question = await chat.say(f'Book the room "{room}"')
            assert is_question_message(question), question
            assert "is booked" in await chat.say("yes")

        rooms = [f"r{number}" for number in range(BEFORE + AFTER)]
        await asyncio.gather(*map(book, rooms[:BEFORE]))
        assert {asker for _, _, asker in hotel.log} == {str(one.process.pid) for one in (here, there)}
        await there.kill()
        await asyncio.gather(*map(book, rooms[BEFORE:]))
    assert Counter(room for what, room, _ in hotel.log if what == "booked") == dict.fromkeys(rooms, 1)
