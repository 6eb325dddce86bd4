"""Servers behind the proxy that die or hang: each is named, and harms no other."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from support import faulty_server, mcp_servers
from support.command_line import CommandLine
from support.mcp_servers import StdioServer, echoing, in_process, until
from support.proxied_servers import each_client, names_now, other, others_answer, proxied
from support.proxies import META, Era, Make, Talk, served, talking

from packetgate.connectors.clients import ProxyConfig
from packetgate.connectors.proxy.serving import open_gateway
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.tools.servers import connection as connecting
from packetgate.tools.servers.config import ServerConfig
from packetgate.tools.servers.connection import Connection
from packetgate.tools.servers.starting import configured

TIMEOUT_MS = 5_000
LONG_MS = 60_000
"""For the faults that end by their size, however slow the machine."""
SAYS = {
    "dies in the call": ("went away during the call", "gave no usable answer"),
    "hangs": ("gave no answer within 5 s", "gave no answer within 5 s"),
    "slow for ever": ("gave no answer within 5 s", "gave no answer within 5 s"),
    "garbage": ("gave no answer within 5 s", "gave no usable answer"),
}
"""By fault, what is told of it: over pipes, and over HTTP."""
ENDED = ("it was ended, for a line of more than 32 MB", "the answer has more than 32 MB")
WRITE: dict[str, Any] = {"name": "notes.write_line", "arguments": {"line": "once"}}


# --- a server dies in the middle of a call


async def test_a_read_whose_server_is_killed_names_it_and_the_server_comes_back(
    tmp_path: Path, make: Make, era: Era
) -> None:
    server = StdioServer(tmp_path, "notes", trusted=False)
    async with proxied(tmp_path / "home", server.connection, other()) as (_, url), talking(url, make, era) as talk:
        call = asyncio.create_task(talk.call("call_read_tool", name="notes.read_never"))
        await until(lambda: server.lines("read") == ["read_never"])
        assert await others_answer(talk)
        await server.kill()
        await until(lambda: server.lines("read") == ["read_never"] * 2)
        await server.kill()
        assert await others_answer(talk)
        said = await call
        assert said.is_error
        assert "'notes' went away during the call" in said.text
        assert "Traceback" not in said.text
        assert {"other__echo", "notes__get_pid"} < await names_now(url, make, era)
        again = await talk.call("call_read_tool", name="notes.get_pid")
        assert (again.is_error, again.text, len(server.pids)) == (False, str(server.pids[2]), 3)
        assert server.lines("read") == ["read_never", "read_never", "get_pid"]


@each_client
async def test_what_surely_reads_is_sent_once_more_and_answers(tmp_path: Path, make: Make, era: Era) -> None:
    server = StdioServer(tmp_path, "notes")
    async with proxied(tmp_path / "home", server.connection, other()) as (_, url), talking(url, make, era) as talk:
        said = await talk.call("call_read_tool", name="notes.read_once_killed")
        assert (said.is_error, said.text, len(server.pids)) == (False, "read at last", 2)


async def test_many_reads_of_a_server_that_is_killed_share_one_new_start(tmp_path: Path) -> None:
    server = StdioServer(tmp_path, "notes")
    async with (
        proxied(tmp_path / "home", server.connection) as (_, url),
        talking(url, "sdk", "legacy") as one,
        talking(url, "fastmcp", "2026-07-28") as two,
    ):
        assert not (await one.call("call_read_tool", name="notes.get_pid")).is_error
        await server.kill()
        calls = [talk.call("call_read_tool", name="notes.get_pid") for talk in (one, two) * 3]
        assert {said.text for said in await asyncio.gather(*calls)} == {str(server.pids[-1])}
        assert len(server.pids) == 2


async def test_a_write_whose_server_dies_is_unknown_and_is_not_run_again_unasked(
    tmp_path: Path, make: Make, era: Era
) -> None:
    server, answers = StdioServer(tmp_path, "notes"), ["yes", "no"]
    async with (
        proxied(tmp_path / "home", server.connection, other(), allow_write_tools=True) as (gateway, url),
        talking(url, make, era, answer=lambda *_: answers.pop(0)) as talk,
    ):
        said = await talk.call("call_changing_tool", **WRITE)
        assert said.is_error
        assert said.structured
        assert said.structured["status"] == "unknown"
        assert "it is unknown. server 'notes' went away during the call" in said.text
        assert "failed" not in said.text
        assert await others_answer(talk)
        again = await talk.call("call_changing_tool", **WRITE)
        assert again.is_error
        assert again.structured
        assert again.structured["status"] == "user_denied"
        assert (len(talk.asked), server.written) == (2, ["once"])
        ended = await gateway.chain.journal.of_events("call_ended")
        assert [row.entry.detail["status"] for row in ended if row.entry.detail["tool"] == "notes.write_line"] == [
            "unknown"
        ]


async def test_the_answer_to_a_write_that_was_cut_off_does_not_count_again(tmp_path: Path) -> None:
    server, answer = StdioServer(tmp_path, "notes"), mcp_types.ElicitResult(action="accept", content={"answer": "yes"})
    async with (
        proxied(tmp_path / "home", server.connection, allow_write_tools=True) as (_, url),
        talking(url, "sdk", "2026-07-28", answer=lambda *_: "yes") as talk,
    ):
        session = talk.client.session
        asked = await session.call_tool("call_changing_tool", WRITE, allow_input_required=True)
        given = {"input_responses": {"answer": answer}, "request_state": asked.request_state}
        first = await session.call_tool("call_changing_tool", WRITE, **given)
        assert first.structured_content["status"] == "unknown"
        again = await session.call_tool("call_changing_tool", WRITE, **given, allow_input_required=True)
        assert isinstance(again, mcp_types.InputRequiredResult)
        assert server.written == ["once"]


@pytest.mark.parametrize("make", ["sdk"])
async def test_what_was_answered_beside_its_client_and_cut_off_is_told_once_as_unknown(
    cli: CommandLine, make: Make, era: Era
) -> None:
    server = StdioServer(cli.folder, "notes")
    entry = {**server.config.entry, "trusted": False}
    config = cli.folder / "mcp.json"
    config.write_text(f'{{"mcpServers": {{"notes": {json.dumps(entry)}}}}}')
    settings = Settings(mcp_config=config, home=cli.home, root=cli.folder)
    writes = RoutingContext(allow_write_tools=True)
    async with (
        open_gateway(settings, ProxyConfig(), writes) as gateway,
        served(gateway) as address,
        talking(f"{address}/mcp", make, era) as talk,
    ):
        refused = await talk.call("call_changing_tool", **WRITE)
        session = re.search(r"--session (\S+) yes", refused.text)
        assert session
        shown = await asyncio.to_thread(cli.run, "answer", "--session", session[1])
        assert "notes.write_line" in shown.out
        done = await asyncio.to_thread(cli.run, "answer", "--session", session[1], "yes")
        assert done.status in {0, 1}, done.out + done.err
        assert server.written == ["once"]
        told = await talk.call("call_changing_tool", **WRITE)
        assert told.structured
        assert told.structured["status"] == "unknown"
        anew = await talk.call("call_changing_tool", **WRITE)
        assert "packetgate answer --session" in anew.text
        assert server.written == ["once"]


@each_client
async def test_one_that_stays_dead_is_left_alone_for_a_while_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Make, era: Era
) -> None:
    monkeypatch.setattr(connecting, "BACKOFF_S", (0.0, 3_600.0))
    server = StdioServer(tmp_path, "notes")
    gone, starts = tmp_path / "gone", tmp_path / "starts"
    script = (
        "import pathlib, runpy, sys\n"
        f"with open({str(starts)!r}, 'a') as file: file.write('x')\n"
        f"if pathlib.Path({str(gone)!r}).exists(): sys.exit('gone')\n"
        f"sys.argv = ['', {str(server.folder)!r}]; sys.path[0] = {str(mcp_servers.SCRIPT.parent)!r}\n"
        f"runpy.run_path({str(mcp_servers.SCRIPT)!r}, run_name='__main__')"
    )
    entry = {"command": sys.executable, "args": ["-c", script]}
    dying = configured(ServerConfig("notes", entry), tmp_path / "logs")
    async with proxied(tmp_path / "home", dying, other()) as (_, url), talking(url, make, era) as talk:
        assert not (await talk.call("call_read_tool", name="notes.get_pid")).is_error
        gone.touch()
        await server.kill()
        await until(lambda: dying.may_retry)
        for _ in range(6):
            assert (await talk.call("call_read_tool", name="notes.get_pid")).is_error
            assert await others_answer(talk)
        assert starts.read_text() == "xxx"
        assert await names_now(url, make, era) == META | {"other__echo"}
        gone.unlink()
        monkeypatch.setattr(connecting, "BACKOFF_S", (0.0, 0.0))
        assert not (await talk.call("call_read_tool", name="notes.get_pid")).is_error
        assert "notes__get_pid" in await names_now(url, make, era)


# --- a server hangs, or answers what is no answer


@pytest.mark.parametrize(("verb", "status"), [("get", "failed"), ("set", "unknown")])
async def test_a_call_that_hangs_ends_at_its_servers_time_out(
    tmp_path: Path, make: Make, era: Era, verb: str, status: str
) -> None:
    server, never, asked = echoing("slow"), asyncio.Event(), list[str]()

    async def wait_for_it() -> str:
        """Wait for what never comes."""
        asked.append(verb)
        await never.wait()
        return "never"

    server.tool(wait_for_it, name=f"{verb}_it")
    slow = in_process(server, timeout_s=1.0)
    async with (
        proxied(tmp_path, slow, other(), allow_write_tools=True) as (_, url),
        talking(url, make, era, answer=lambda *_: "yes") as talk,
    ):
        said = await talk.call("call_changing_tool", name=f"slow.{verb}_it")
        assert said.is_error
        assert said.structured
        assert said.structured["status"] == status
        assert "server 'slow' gave no answer within 1 s" in said.text
        still_there = await talk.call("call_read_tool", name="slow.echo", arguments={"text": "x"})
        assert still_there.text == "slow says x"
        assert asked == [verb]


@each_client
async def test_while_one_call_hangs_all_others_are_answered(tmp_path: Path, make: Make, era: Era) -> None:
    server, begun, never = echoing("slow"), asyncio.Event(), asyncio.Event()

    @server.tool
    async def get_never() -> str:
        """Get what never comes."""
        begun.set()
        await never.wait()
        return "at last"

    async with (
        proxied(tmp_path, in_process(server, timeout_s=3_600.0), other()) as (_, url),
        talking(url, make, era) as talk,
        talking(url, "sdk", "legacy") as beside,
    ):
        hanging = asyncio.create_task(talk.call("call_read_tool", name="slow.get_never"))
        await begun.wait()
        for one in (talk, beside):
            assert all(await asyncio.gather(*(others_answer(one) for _ in range(5))))
            said = await one.call("call_read_tool", name="slow.echo", arguments={"text": "x"})
            assert said.text == "slow says x"
            assert "slow__get_never" in await one.names()
        assert not hanging.done()
        never.set()
        assert (await hanging).text == "at last"


@asynccontextmanager
async def faulty(fault: str, folder: Path, timeout_ms: int) -> AsyncIterator[tuple[Connection, Connection]]:
    """Start a server with a fault twice, one that is reached over pipes and one over HTTP."""
    port, name = folder / f"{fault}.port", fault.replace(" ", "-")
    command, *arguments = faulty_server.entry(fault)
    piped = ServerConfig(f"{name}-stdio", {"command": command, "args": arguments, "timeout": timeout_ms})
    process = await asyncio.create_subprocess_exec(*faulty_server.entry(fault, port), stderr=asyncio.subprocess.DEVNULL)
    try:
        await until(port.exists)
        url = f"http://127.0.0.1:{port.read_text()}/mcp"
        reached = ServerConfig(f"{name}-http", {"url": url, "timeout": timeout_ms})
        yield configured(piped, folder / "logs"), configured(reached, folder / "logs")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _told(talk: Talk, server: str) -> str:
    said = await talk.call("call_read_tool", name=f"{server}.get_ledger")
    assert said.is_error
    assert f"server {server!r}" in said.text
    assert len(said.text) < 1_000
    return said.text


async def test_every_fault_at_once_is_told_by_its_servers_name_and_the_others_answer(tmp_path: Path) -> None:
    async with (
        faulty("dies in the call", tmp_path, TIMEOUT_MS) as dying,
        faulty("hangs", tmp_path, TIMEOUT_MS) as hanging,
        faulty("slow for ever", tmp_path, TIMEOUT_MS) as dripping,
        faulty("garbage", tmp_path, TIMEOUT_MS) as babbling,
        proxied(tmp_path / "home", *dying, *hanging, *dripping, *babbling, other()) as (_, url),
        talking(url, "fastmcp", "legacy") as talk,
        talking(url, "sdk", "2026-07-28") as beside,
    ):
        servers = {f"{fault.replace(' ', '-')}-{way}": told for fault in SAYS for way, told in _ways(SAYS[fault])}
        calls = {name: asyncio.create_task(_told(talk, name)) for name in servers}
        assert all(await asyncio.gather(*(others_answer(beside) for _ in range(10))))
        for name, call in calls.items():
            assert servers[name] in await call
        assert await others_answer(talk)
        assert {f"{name}__get_ledger" for name in servers} < await names_now(url, "sdk", "legacy")


@pytest.mark.parametrize("fault", ["floods", "100 MB"])
async def test_an_answer_without_an_end_is_not_read_to_it(tmp_path: Path, fault: str) -> None:
    async with (
        faulty(fault, tmp_path, LONG_MS) as servers,
        proxied(tmp_path / "home", *servers, other()) as (_, url),
        talking(url, "sdk", "legacy") as talk,
    ):
        for (way, told), server in zip(_ways(ENDED), servers, strict=True):
            assert server.name.endswith(way)
            assert told in await _told(talk, server.name)
            assert await others_answer(talk)


def _ways(told: tuple[str, str]) -> list[tuple[str, str]]:
    return list(zip(("stdio", "http"), told, strict=True))
