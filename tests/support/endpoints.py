"""`packetgate serve` as its users start it, and conversations held with it by the official client."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from openai import AsyncOpenAI
from support.command_line import CommandLine
from support.fork_server import COMMAND
from support.mcp_servers import until

from packetgate.state.base import new_id


@dataclass
class Served:
    """A running endpoint."""

    url: str
    process: asyncio.subprocess.Process
    clients: list[AsyncOpenAI] = field(default_factory=list)

    def client(self, token: str = "any", **headers: str) -> AsyncOpenAI:
        """Return a client that never tries again."""
        client = AsyncOpenAI(base_url=self.url, api_key=token, max_retries=0, timeout=600, default_headers=headers)
        self.clients.append(client)
        return client

    async def kill(self) -> None:
        """Kill it with -9."""
        self.process.kill()
        await self.process.wait()

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to end, and return its exit status."""
        self.process.send_signal(how)
        return await self.process.wait()


@asynccontextmanager
async def serving(cli: CommandLine, *args: str, **variables: str) -> AsyncIterator[Served]:
    """Start the endpoint, on a free port, and end it."""
    log = cli.folder.with_name(f"log-{new_id()}")
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(str(COMMAND), "serve", "--port", "0", *args),
            cwd=cli.folder,
            env={**cli.environment, "NO_PROXY": "127.0.0.1", **variables},
            stdout=file,
            stderr=file,
        )
    try:
        await until(lambda: process.returncode is not None or "/v1\n" in log.read_text(), 180)
        found = re.search(r"http://\S+/v1", log.read_text())
        assert found, log.read_text()
        served = Served(found[0], process)
        yield served
        for client in served.clients:
            await client.close()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        assert "Traceback" not in log.read_text(), log.read_text()


@dataclass
class Chat:
    """One conversation, as a chat client keeps it."""

    client: AsyncOpenAI
    options: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)

    async def say(self, words: str | list[dict[str, Any]], *, stream: bool = False) -> str:
        """Say something, in words or parts, and return the answer; both are part of the conversation from then on."""
        asked = [*self.messages, {"role": "user", "content": words}]
        given: dict[str, Any] = {"model": "packetgate", "messages": asked, **self.options}
        if stream:
            chunks = await self.client.chat.completions.create(stream=True, **given)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices]
            answer = "".join(pieces)
        else:
            answer = (await self.client.chat.completions.create(**given)).choices[0].message.content or ""
        self.messages = [*asked, {"role": "assistant", "content": answer}]
        return answer

    def at(self, turn: int) -> "Chat":
        """Return the conversation as it stood after that many turns: what is continued by who edits or tries again."""
        return Chat(self.client, self.options, self.messages[: 2 * turn])
