"""Servers behind the proxy that die or hang: the error names the server, and the others still answer."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import StdioServer, echoing, in_process, until
from support.proxies import Protocol, configured_client, other_server, proxy_client, talking

WRITE: dict[str, Any] = {"name": "notes.write_line", "arguments": {"line": "once"}}


async def test_a_killed_server_restarts_and_the_error_names_it(tmp_path: Path, kind: Protocol) -> None:
    server = StdioServer(tmp_path, "notes", trusted=False)
    async with proxy_client(tmp_path / "home", server.connection, other_server(), kind=kind) as talk:
        call = asyncio.create_task(talk.call("call_read_tool", name="notes.read_never"))
        for attempt in (1, 2):  # a read is sent twice
            await until(lambda attempt=attempt: server.lines("read") == ["read_never"] * attempt)
            await server.kill()
            assert await talk.other_answers()
        result = await call
        assert result.is_error
        assert "'notes'" in result.text
        again = await talk.call("call_read_tool", name="notes.get_pid")
        assert (again.is_error, again.text, len(server.pids)) == (False, str(server.pids[2]), 3)


async def test_a_write_whose_server_dies_is_unknown_and_asked_about_again(tmp_path: Path, kind: Protocol) -> None:
    server, answers = StdioServer(tmp_path, "notes"), ["yes", "no"]
    async with proxy_client(
        tmp_path / "home", server.connection, kind=kind, answer=lambda *_: answers.pop(0), allow_write_tools=True
    ) as talk:
        assert (await talk.call("call_changing_tool", **WRITE)).structured["status"] == "unknown"
        assert (await talk.call("call_changing_tool", **WRITE)).structured["status"] == "user_denied"
        assert (len(talk.asked), server.written) == (2, ["once"])
        ended = await talk.gateway.gate.journal.event_entries("call_ended")
        assert [row.entry.detail["status"] for row in ended] == ["unknown"]


@pytest.mark.parametrize(("verb", "status"), [("get", "failed"), ("set", "unknown")])
async def test_a_hanging_call_ends_at_its_servers_timeout(
    tmp_path: Path, kind: Protocol, verb: str, status: str
) -> None:
    server, called = echoing("slow"), list[str]()

    async def wait_for_it() -> str:
        """Wait forever."""
        called.append(verb)
        await asyncio.Event().wait()
        return "never"

    server.tool(wait_for_it, name=f"{verb}_it")
    slow = in_process(server, timeout_s=1.0)
    async with proxy_client(tmp_path, slow, kind=kind, answer=lambda *_: "yes", allow_write_tools=True) as talk:
        result = await talk.call("call_changing_tool", name=f"slow.{verb}_it")
        assert result.structured["status"] == status
        assert "'slow'" in result.text
        echo = await talk.call("call_read_tool", name="slow.echo", arguments={"text": "x"})
        assert (echo.text, called) == ("slow says x", [verb])


async def test_while_a_call_hangs_all_others_are_answered(tmp_path: Path, kind: Protocol) -> None:
    server, begun, may_end = echoing("slow"), asyncio.Event(), asyncio.Event()

    @server.tool
    async def get_late() -> str:
        """Get something late."""
        begun.set()
        await may_end.wait()
        return "at last"

    slow = in_process(server, timeout_s=3_600.0)
    async with (
        proxy_client(tmp_path, slow, other_server(), kind=kind) as talk,
        talking(talk.gateway, talk.url) as beside,
    ):
        hanging = asyncio.create_task(talk.call("call_read_tool", name="slow.get_late"))
        await begun.wait()
        for client in (talk, beside):
            assert all(await asyncio.gather(*(client.other_answers() for _ in range(5))))
            echo = await client.call("call_read_tool", name="slow.echo", arguments={"text": "x"})
            assert echo.text == "slow says x"
        assert not hanging.done()
        may_end.set()
        assert (await hanging).text == "at last"


async def test_the_error_about_a_server_that_fails_to_start_contains_no_paths(tmp_path: Path, kind: Protocol) -> None:
    dead = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no')"]}
    async with configured_client(tmp_path, tmp_path / "home", {"notes": dead}, kind) as talk:
        result = await talk.call("notes.get_pid")
        assert result.is_error
        assert "server 'notes'" in result.text
        assert str(tmp_path) not in result.text
