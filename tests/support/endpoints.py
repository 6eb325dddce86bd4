"""`packetgate serve`, in this process or as a command, and conversations with the official client."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from openai import AsyncOpenAI
from support import mcp_servers
from support.command_line import CommandLine
from support.fork_server import COMMAND
from support.mcp_servers import until
from typer.main import get_command

from packetgate.connectors.clients import load_clients
from packetgate.connectors.http import GRACE_S
from packetgate.connectors.options import check_settings, context_for_others, run_settings_from, settings_from
from packetgate.connectors.serve.command import TOKEN_VARIABLE, open_app, serve
from packetgate.state.base import new_id


@dataclass
class Served:
    """A running endpoint."""

    url: str
    clients: list[AsyncOpenAI] = field(default_factory=list)

    def client(self, token: str = "any", **headers: str) -> AsyncOpenAI:
        """Return a client without retries."""
        client = AsyncOpenAI(base_url=self.url, api_key=token, max_retries=0, timeout=600, default_headers=headers)
        self.clients.append(client)
        return client

    async def aclose(self) -> None:
        """Close the clients."""
        for client in self.clients:
            await client.close()


@dataclass
class Started(Served):
    """An endpoint in a separate process."""

    process: asyncio.subprocess.Process = field(kw_only=True)

    async def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.process.kill()
        await self.process.wait()

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the exit status."""
        self.process.send_signal(how)
        return await self.process.wait()


@asynccontextmanager
async def serving(cli: CommandLine, *args: str, **variables: str) -> AsyncIterator[Served]:
    """Serve the endpoint in this process, with the options and variables of the command, on a free port."""
    with _as_in(cli, variables):
        given = get_command(_ALONE).make_context("serve", [*args]).params
        settings = check_settings(settings_from(**{name: given[name] for name in ("mcp_config", "lite", "prime")}))
        config = load_clients("serve", settings.preferences_path)
        switches = (given["overrides"], given["allow_writes"], given["allow_commands"])
        context = context_for_others(run_settings_from(settings, *switches))
        tokens = config.tokens("serve", TOKEN_VARIABLE)
        async with (
            open_app(settings, config, context, tokens, given["allow_host"] or []) as app,
            mcp_servers.serving(app, GRACE_S) as address,
            aclosing(Served(f"{address}/v1")) as served,
        ):
            yield served


_ALONE = typer.Typer(add_completion=False)
_ALONE.command("serve")(serve)


@contextmanager
def _as_in(cli: CommandLine, variables: dict[str, str]) -> Iterator[None]:
    """Give this process the command's folder and environment."""
    before, folder = dict(os.environ), Path.cwd()
    given = {**cli.environment, "NO_PROXY": "127.0.0.1", **variables}
    os.environ.clear()
    os.environ.update(given)
    os.chdir(cli.folder)
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(before)


@asynccontextmanager
async def started(cli: CommandLine, *args: str, **variables: str) -> AsyncIterator[Started]:
    """Run the command on a free port until the end of the block, to test the process itself."""
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
        served = Started(found[0], process=process)
        yield served
        await served.aclose()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        assert "Traceback" not in log.read_text(), log.read_text()


@dataclass
class Chat:
    """One conversation in a chat client."""

    client: AsyncOpenAI
    options: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)

    async def say(self, words: str | list[dict[str, Any]], *, stream: bool = False) -> str:
        """Send a message, append it and the answer to the conversation, and return the answer."""
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
        """Return the conversation after its first `turn` turns, for an edit or a retry."""
        return Chat(self.client, self.options, self.messages[: 2 * turn])
