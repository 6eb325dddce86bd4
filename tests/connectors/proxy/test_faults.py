"""Servers behind the proxy that die or hang: the error names the server, and the others still answer."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from support.mcp_servers import StdioServer, echoing, in_process
from support.proxies import Protocol, configured_client, other_server, proxy_client, talking

WRITE: dict[str, Any] = {"name": "notes.write_line", "arguments": {"line": "once"}}


async def test_a_write_whose_server_dies_is_unknown_and_needs_approval_again(tmp_path: Path, kind: Protocol) -> None:
    server, answers = StdioServer(tmp_path, "notes"), ["yes", "no"]
    async with proxy_client(
        tmp_path / "home", server.connection, kind=kind, answer=lambda *_: answers.pop(0), allow_write_tools=True
    ) as talk:
        assert (await talk.call("call_changing_tool", **WRITE)).structured["status"] == "unknown"
        assert (await talk.call("call_changing_tool", **WRITE)).structured["status"] == "user_denied"
        assert (len(talk.asked), server.written) == (2, ["once"])
        ended = await talk.gateway.gate.journal.event_entries("call_ended")
        assert [row.entry.detail["status"] for row in ended] == ["unknown"]


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


async def test_the_error_about_a_server_that_fails_to_start_contains_no_paths(tmp_path: Path) -> None:
    dead = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no')"]}
    async with configured_client(tmp_path, tmp_path / "home", {"notes": dead}) as talk:
        result = await talk.call("notes.get_pid")
        assert result.is_error
        assert "server 'notes'" in result.text
        assert str(tmp_path) not in result.text
