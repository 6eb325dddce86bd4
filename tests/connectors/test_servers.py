"""Requests on two third-party servers: the npm filesystem server and a Python server."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.programs import descendants, require

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Finished, Say, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.transitions import ToolExecutionStatus

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def installed() -> None:
    """Installs both servers in advance, so that a start installs nothing."""
    package = [require("npx"), "-y", "@modelcontextprotocol/server-filesystem"]
    for command in (package, [require("uvx"), "mcp-server-time", "--help"]):
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)


@pytest.fixture
def config(installed: None, cli: CommandLine) -> Path:
    """An `mcp.json` with two working servers, a missing server, and a server that never answers."""
    servers = {
        "files": {
            "command": require("npx"),
            "args": ["-y", "@modelcontextprotocol/server-filesystem", str(cli.folder)],
            "trusted": True,
        },
        "time": {"command": require("uvx"), "args": ["mcp-server-time"], "trusted": True},
        "gone": {"command": "no-such-program"},
        "mute": {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]},
    }
    path = cli.folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers, "builtin": False}))
    return path


def settings(cli: CommandLine, config: Path) -> Settings:
    return Settings(mcp_config=config, root=cli.folder, home=cli.home, patience_s=15)


async def ask(sessions: Sessions, text: str) -> CognitionPacket:
    async for event in run_turn(sessions, Say(text), "s", RoutingContext()):
        if isinstance(event, Finished):
            return event.packet
    raise AssertionError("the turn asked instead of answering")


def test_the_page_of_a_tool_says_which_tool_undoes_a_call(cli: CommandLine, config: Path) -> None:
    shown = cli.run("tools", "files.move_file")
    assert "to undo a call: move_file source=" in " ".join(shown.out.split())
    assert "to undo a call" not in cli.run("tools", "files.write_file").out


async def test_requests_reach_the_right_server_and_the_packet_names_unavailable_ones(
    cli: CommandLine, config: Path
) -> None:
    async with open_sessions(settings(cli, config)) as sessions:
        read = await ask(sessions, f"Read {cli.folder / 'plan.txt'}")
        packet = await ask(sessions, "What is the current time in timezone=UTC?")
    assert read.routing.selected_tool in {"files.read_text_file", "files.read_multiple_files"}
    assert "The gate opens at seven." in read.response.candidate
    assert packet.routing.selected_tool == "time.get_current_time"
    assert '"timezone": "UTC"' in packet.response.candidate
    problems = [error.message for error in read.metrics.errors]
    assert any(problem.startswith("gone: ") and "no-such-program" in problem for problem in problems)
    assert "mute: still starting" in problems


async def test_a_server_killed_during_a_session_is_restarted_and_others_continue(
    cli: CommandLine, config: Path
) -> None:
    async with open_sessions(settings(cli, config)) as sessions:
        await ask(sessions, f"Read {cli.folder / 'plan.txt'}")
        for pid, command in descendants().items():
            if "server-filesystem" in command:
                with suppress(ProcessLookupError):  # it ends with the process around it
                    os.kill(pid, signal.SIGKILL)
        packet = await ask(sessions, "What is the current time in timezone=UTC?")
        assert packet.routing.execution_status is ToolExecutionStatus.EXECUTED
        again = await ask(sessions, f"Read {cli.folder / 'todo.txt'}")
        assert again.routing.execution_status is ToolExecutionStatus.EXECUTED
        assert "Buy milk." in again.response.candidate
