"""`packetgate answer` records a decision, and the proxy process that asked runs the call on its own servers."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp import MCPError
from support.command_line import CommandLine, Outcome
from support.fork_server import COMMAND
from support.mcp_servers import alive, until
from support.plain_server import Folder, configure, entry

from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings

SERVER = """
lines = []
folder.note("started", os.getpid())

@server.tool
async def add_line(text: str) -> str:
    "Add a line to the notes."
    folder.note("ran", f"{os.getpid()} {text}")
    await folder.until("may_end")
    lines.append(text)
    return f"{os.getpid()} {text}"

@server.reading
async def list_lines() -> str:
    "List the lines of the notes."
    return f"{os.getpid()} {os.getppid()} {' '.join(lines)}"
"""
ADD: dict[str, Any] = {"name": "notes.add_line", "arguments": {"text": "one"}}
LIST: dict[str, Any] = {"name": "notes.list_lines"}
WAITING = 3
"""Exit status of a command that waits for an answer."""


@pytest.fixture
def folder(cli: CommandLine) -> Folder:
    """The folder of the stateful server, whose writes complete."""
    configure(cli.folder / "mcp.json", notes=entry(SERVER, cli.folder))
    (cli.folder / "may_end").touch()
    return Folder(cli.folder)


class Agent:
    """A client of a proxy process, without elicitation."""

    def __init__(self, client: Client[Any], progress: list[str]) -> None:
        self._client, self.progress = client, progress

    async def call(self, tool: str, call: dict[str, Any]) -> str:
        result = await self._client.call_tool_mcp(tool, call)
        return "\n".join(getattr(part, "text", "") for part in result.content)

    async def add(self) -> str:
        return await self.call("call_changing_tool", ADD)

    async def pids(self) -> tuple[str, int]:
        """Return the process ids of the server and of the proxy."""
        server, proxy, *_ = (await self.call("call_read_tool", LIST)).split()
        return server, int(proxy)


@asynccontextmanager
async def agent(cli: CommandLine, wait_s: float = 0) -> AsyncIterator[Agent]:
    """Start a proxy whose calls wait `wait_s` seconds for an answer, and connect."""
    progress: list[str] = []

    async def on_progress(_done: float, _total: float | None, message: str | None) -> None:
        progress.append(message or "")

    environment = {**cli.environment, "PACKETGATE_ANSWER_WAIT_S": str(wait_s)}
    transport = StdioTransport(str(COMMAND), ["proxy", "--allow-writes"], environment, str(cli.folder))
    async with Client(transport, progress_handler=on_progress) as client:
        yield Agent(client, progress)


async def answer(cli: CommandLine, session: str, *reply: str) -> Outcome:
    return await asyncio.to_thread(partial(cli.run, "answer", *reply, "--session", session))


async def asked(cli: CommandLine, text: str) -> str:
    """Show the question in a refusal or progress report, and return its session."""
    (session,) = re.findall(r"answer --session ([\w-]+)", text)
    shown = await answer(cli, session)
    assert shown.status == WAITING, shown.err
    for part in ("notes.add_line", "text = one", "write tools need approval"):
        assert part in shown.out
    return session


async def events(cli: CommandLine, *names: str) -> list[str]:
    """Return the journal's events with these names, except those of reads."""
    rows = await open_journal(Settings(home=cli.home)).event_entries(*names)
    return [row.entry.event for row in rows if row.entry.detail.get("tool") != "notes.list_lines"]


@pytest.mark.parametrize("wait_s", [0, 60])
async def test_an_approved_write_runs_on_the_agents_own_server(cli: CommandLine, folder: Folder, wait_s: float) -> None:
    async with agent(cli, wait_s) as one:
        server, _ = await one.pids()
        text = await one.add()
        assert one.progress == []  # the first request does not wait, because the client may not show progress
        if wait_s:
            call = asyncio.create_task(one.add())
            await until(lambda: bool(one.progress))
            text = one.progress[0]
        session = await asked(cli, text)
        answered = await answer(cli, session, "yes")
        assert (answered.status, f"{server} one" in answered.out) == (0, True), answered.err
        assert await (call if wait_s else one.add()) == f"{server} one"
        assert await one.call("call_read_tool", LIST) == f"{server} {(await one.pids())[1]} one"
        late = await answer(cli, session, "yes")
        assert (late.status, "no pending question" in late.err) == (2, True), late.err
    assert folder.lines("started") == [server]
    assert folder.lines("ran") == [f"{server} one"]
    assert await events(cli, "call_started", "call_ended") == ["call_started", "call_ended"]


async def test_only_one_of_two_answers_at_once_counts(cli: CommandLine, folder: Folder) -> None:
    async with agent(cli) as one:
        session = await asked(cli, await one.add())
        both = await asyncio.gather(answer(cli, session, "yes"), answer(cli, session, "yes"))
        assert sorted(outcome.status for outcome in both) == [0, 2], [outcome.err for outcome in both]
        assert await one.add() == folder.lines("ran")[0]
    assert len(folder.lines("ran")) == 1
    assert await events(cli, "answer_recorded") == ["answer_recorded"]


async def test_a_denied_call_does_not_run_and_an_unusable_answer_repeats_the_question(
    cli: CommandLine, folder: Folder
) -> None:
    async with agent(cli) as one:
        session = await asked(cli, await one.add())
        again = await answer(cli, session, "--edit", '{"txt": "two"}')
        assert (again.status, "the edited call is not valid" in again.out) == (WAITING, True)
        assert (await answer(cli, session, "no")).status == 0
        assert "user denied" in await one.add()
    assert folder.lines("ran") == []


@pytest.mark.slow
async def test_a_decision_for_a_killed_proxy_can_run_here(cli: CommandLine, folder: Folder) -> None:
    with suppress(MCPError, ProcessLookupError):
        async with agent(cli) as one:
            _, proxy = await one.pids()
            session = await asked(cli, await one.add())
            os.kill(proxy, signal.SIGSTOP)
            deciding = asyncio.create_task(answer(cli, session, "yes"))
            while not await events(cli, "answer_recorded"):  # noqa: ASYNC110  another process records it
                await asyncio.sleep(0.1)
            os.kill(proxy, signal.SIGKILL)
            decided = await deciding
    assert (decided.status, "ended before it reported a result" in decided.err) == (2, True), decided.err
    async with agent(cli) as other:
        other_session = await asked(cli, await other.add())
        assert other_session != session
        answered = await answer(cli, session, "yes")
        assert (answered.status, "The proxy that asked has ended" in answered.err) == (WAITING, True)
        assert "--run-here" in answered.out
        assert folder.lines("ran") == []
        here = await answer(cli, session, "yes", "--run-here")
        assert here.status == 0, here.err
        (ran,) = folder.lines("ran")
        assert ran.split()[0] not in {(await other.pids())[0], folder.lines("started")[0]}


@pytest.mark.slow
async def test_a_write_of_a_proxy_killed_during_it_is_unknown(cli: CommandLine, folder: Folder) -> None:
    (folder / "may_end").unlink()
    with suppress(MCPError, ProcessLookupError):
        async with agent(cli) as one:
            server, proxy = await one.pids()
            session = await asked(cli, await one.add())
            recorded = await answer(cli, session, "yes", "--json")  # stops waiting for the result
            assert (recorded.status, "The proxy runs the call" in recorded.err) == (0, True)
            assert json.loads(recorded.out)["tool_routing"]["calls"][0]["status"] == "approved"
            os.kill(proxy, signal.SIGKILL)
    await until(lambda: not alive(int(server)))
    (folder / "may_end").touch()
    async with agent(cli) as other:
        repeated = await other.add()
        assert "status unknown. The same call was made before" in repeated
        assert "NOT run" not in repeated
    answered = await answer(cli, session)
    assert (answered.status, "It had begun to run the answer" in answered.err) == (WAITING, True), answered.err
    here = await answer(cli, session, "--run-here")
    assert (here.status, "it is not known whether it finished" in here.out) == (WAITING, True), here.err
    assert "it is unknown whether it ran. To decide" in here.out
    assert folder.lines("ran") == [f"{server} one"]
