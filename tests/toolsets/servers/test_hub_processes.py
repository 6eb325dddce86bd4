"""The hub over real server processes that die at start, are slow, or are killed. Other servers continue to answer."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from fastmcp import FastMCP
from support.mcp_servers import SCRIPT, StdioServer, alive, in_process, until
from support.programs import descendants

from packetgate.state.errors import LostCallError, ServerError
from packetgate.toolsets.servers.config import ServerConfig
from packetgate.toolsets.servers.connection import Connection
from packetgate.toolsets.servers.hub import McpHub
from packetgate.toolsets.servers.opening import new_connection

clock: FastMCP[None] = FastMCP("clock")


@clock.tool
def get_time() -> str:
    """Get the time."""
    return "noon"


def started_by(folder: Path, name: str, *command: str, **entry: object) -> Connection:
    return new_connection(
        ServerConfig(name, {"command": command[0], "args": list(command[1:]), **entry}), folder / "logs"
    )


async def others_answer(hub: McpHub) -> bool:
    return (await hub.call("clock.get_time", {})).output == "noon"


@pytest.mark.parametrize(
    ("command", "entry", "says"),
    [
        (["no-such-program-anywhere"], {}, r"the program 'no-such-program-anywhere' is not installed, or not on PATH$"),
        ([sys.executable, "-c", "import sys; sys.exit('set NOTES_KEY first')"], {}, r".*its output is in "),
        ([sys.executable, "-c", "print('not the protocol')"], {}, r".*Connection closed"),
        ([sys.executable], {"cwd": "/no/such/folder"}, r".*/no/such/folder"),
    ],
)
async def test_a_server_that_does_not_start_has_a_problem(
    tmp_path: Path, command: list[str], entry: dict[str, str], says: str
):
    async with McpHub([started_by(tmp_path, "dead", *command, **entry), in_process(clock)]) as hub:
        assert list(await hub.catalogue()) == ["clock.get_time"]
        assert await others_answer(hub)
        dead = hub.health()[1]
        assert (dead.name, dead.state, dead.tools) == ("dead", "failed", 0)
        assert re.match(says, dead.problem)
        assert "\n" not in dead.problem


async def test_a_slow_server_joins_later(tmp_path: Path):
    slow = StdioServer(tmp_path, "slow", waits=True)
    async with McpHub([slow.connection, in_process(clock)], patience_s=0.5) as hub:
        assert list(await hub.catalogue()) == ["clock.get_time"]
        assert hub.health()[1].state == "connecting"
        assert await others_answer(hub)
        hub._patience_s = 3600.0
        async with asyncio.timeout(60):
            assert list(await hub.catalogue()) == ["clock.get_time"], "the hub waits for each server once"
        slow.let_start()
        await until(lambda: slow.connection.state == "ready")
        assert "slow.get_pid" in await hub.catalogue()
        assert (await hub.call("slow.get_pid", {})).output == str(slow.pids[-1])
        assert len(slow.pids) == 1


async def test_a_server_that_died_between_calls_is_restarted(tmp_path: Path):
    server = StdioServer(tmp_path, "notes", trusted=False)
    async with McpHub([server.connection]) as hub:
        await hub.catalogue()
        for starts in (2, 3):
            await server.kill()
            await until(lambda: server.connection.can_reconnect)
            if starts == 3:
                assert "notes.get_pid" in await hub.catalogue()
            assert (await hub.call("notes.get_pid", {})).output == str(server.pids[-1])
            assert len(server.pids) == starts


async def test_reads_on_a_killed_server_share_one_new_process(tmp_path: Path):
    server = StdioServer(tmp_path, "notes")
    async with McpHub([server.connection, in_process(clock)]) as hub:
        await hub.catalogue()
        await server.kill()
        results = await asyncio.gather(*(hub.call("notes.get_pid", {}) for _ in range(5)))
        assert len(server.pids) == 2
        assert {result.output for result in results} == {str(server.pids[1])}
        assert await others_answer(hub)
        assert hub.health()[1].state == "ready"


@pytest.mark.parametrize("trusted", [True, False])
async def test_only_a_known_read_is_retried(tmp_path: Path, trusted: bool):
    server = StdioServer(tmp_path, "notes", trusted=trusted)
    async with McpHub([server.connection]) as hub:
        await hub.catalogue()
        if trusted:
            assert (await hub.call("notes.read_once_killed", {})).output == "read at last"
        else:
            with pytest.raises(LostCallError, match="'notes'"):
                await hub.call("notes.read_once_killed", {})
    assert server.lines("read") == ["read_once_killed"] * (2 if trusted else 1)


async def test_a_write_is_not_retried_if_the_server_dies_during_it(tmp_path: Path):
    server = StdioServer(tmp_path, "notes")
    async with McpHub([server.connection, in_process(clock)]) as hub:
        await hub.catalogue()
        with pytest.raises(LostCallError, match="'notes'"):
            await hub.call("notes.write_line", {"line": "once"})
        assert server.written == ["once"]
        assert len(server.pids) == 1
        assert await others_answer(hub)
        assert [(one.name, one.state) for one in hub.health()] == [("clock", "ready"), ("notes", "failed")]
        assert "notes.get_pid" in await hub.catalogue()
        assert len(server.pids) == 2


async def test_a_server_that_stays_dead_is_not_called(tmp_path: Path):
    server = StdioServer(tmp_path, "notes")
    script = f"test -e {server.path}/pids && echo gone for good >&2 || exec {sys.executable} {SCRIPT} {server.path}"
    server.connection = started_by(tmp_path, "notes", "sh", "-c", script)
    async with McpHub([server.connection, in_process(clock)]) as hub:
        await hub.catalogue()
        await server.kill()
        with pytest.raises(ServerError, match=r"notes\.log"):
            await hub.call("notes.get_pid", {})
        assert list(await hub.catalogue()) == ["clock.get_time"]
        assert (tmp_path / "logs" / "notes.log").read_text() == "gone for good\n"
        assert await others_answer(hub)


async def test_closing_the_hub_ends_all_processes(tmp_path: Path):
    servers = [StdioServer(tmp_path, name, waits=name == "slow") for name in ("a", "b", "slow")]
    async with McpHub([server.connection for server in servers], patience_s=0.5) as hub:
        await asyncio.gather(*(server.connection.connect(old_session=0) for server in servers[:2]))
        await hub.catalogue()
        await until(lambda: all(server.pids for server in servers))
        await servers[0].kill()
        await hub.call("a.get_pid", {})
        running = [pid for pid, command in descendants().items() if str(tmp_path) in command]
        assert sorted(running) == sorted(server.pids[-1] for server in servers)
    await until(lambda: not any(alive(pid) for server in servers for pid in server.pids))
