"""A signal at any moment ends a command and its servers immediately and without an error."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest
from support.command_line import CommandLine
from support.fork_server import COMMAND
from support.mcp_servers import alive, until
from support.terminals import KEYS

from packetgate.connectors import process as processes
from packetgate.graph.private_files import private_file

pytestmark = pytest.mark.slow

STUBBORN = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
while True:
    time.sleep(60)
"""
"""A server that never answers, and does not exit at the end of its input or on SIGTERM."""


@pytest.fixture
def stubborn(tmp_path: Path) -> Path:
    """An `mcp.json` with a server that ignores signals and writes its process id to `pid`."""
    entry = {"command": sys.executable, "sandbox": "off", "args": ["-c", STUBBORN, str(tmp_path / "pid")]}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"stubborn": entry}}))
    return file


def start(cli: CommandLine, *args: str, ignoring: bool = False, **variables: str) -> "subprocess.Popen[str]":
    """Start a command on pipes, with SIGINT handled as in a shell, or ignored as in a background job."""
    with inherited(signal.SIG_IGN if ignoring else signal.default_int_handler):
        return subprocess.Popen(
            [str(COMMAND), *args],
            cwd=cli.folder,
            env={**cli.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextmanager
def inherited(handler: Any) -> Iterator[None]:
    """Set how processes started in this block inherit SIGINT."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def was_written(file: Path) -> bool:
    return file.exists() and bool(file.read_text())


@pytest.mark.parametrize("modules", [2, 500])
def test_ctrl_c_during_imports_is_quiet(cli: CommandLine, modules: int) -> None:
    process = start(cli, "ask", "Read plan.txt", PYTHONPROFILEIMPORTTIME="1")
    assert process.stderr is not None
    seen = 0
    for line in process.stderr:
        seen += bool(seen) or line.endswith(" packetgate.connectors.command_line\n")
        if seen == modules:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert [line for line in err.splitlines()[:-1] if not line.startswith("import time:")] == []


@pytest.mark.parametrize("command", [("ask", "Read plan.txt"), ("tools",)])
async def test_no_server_outlives_the_command(cli: CommandLine, stubborn: Path, command: tuple[str, ...]) -> None:
    process = start(cli, *command, "--mcp-config", str(stubborn))
    trace = stubborn.with_name("pid")
    await until(lambda: was_written(trace))
    server = int(trace.read_text())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")
    assert not alive(server)


async def test_in_the_background_ctrl_c_stays_ignored(cli: CommandLine, stubborn: Path) -> None:
    process = start(cli, "tools", "--mcp-config", str(stubborn), ignoring=True)
    trace = stubborn.with_name("pid")
    await until(lambda: was_written(trace))
    process.send_signal(signal.SIGINT)
    os.kill(int(trace.read_text()), signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "! stubborn: " in out


async def test_at_a_terminal_ctrl_c_is_handled_even_if_inherited_as_ignored(cli: CommandLine, stubborn: Path) -> None:
    args = ["ask", "Read plan.txt", "--session", "s", "--mcp-config", str(stubborn)]
    private_file(cli.home / "offered")  # otherwise the command first offers `init`
    with inherited(signal.SIG_IGN):
        environment = {**cli.environment, "TERM": "xterm-256color"}
        child = pexpect.spawn(str(COMMAND), args, cwd=str(cli.folder), env=environment, encoding="utf-8", timeout=90)
    trace = stubborn.with_name("pid")
    await until(lambda: was_written(trace))
    child.send(KEYS["Ctrl-C"])
    child.expect("stopped: .*packetgate answer --session s .* continues it")
    child.expect(pexpect.EOF)
    assert "Traceback" not in (child.before or "")
    child.wait()
    assert child.exitstatus == 130
    assert not alive(int(trace.read_text()))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_a_killed_turn_is_continued(cli: CommandLine, slow_weather: Path, how: signal.Signals) -> None:
    process = start(cli, "ask", 'Get the weather of "Oslo"', "--session", "s", "--mcp-config", str(slow_weather))
    trace = slow_weather.with_name("pid")
    await until(lambda: was_written(trace))
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode in {-how, 128 + how}
    server = int(trace.read_text())
    await until(lambda: not alive(server))
    slow_weather.with_name("may_answer").touch()
    outcome = cli.run("answer", "--session", "s", "--mcp-config", str(slow_weather))
    assert (outcome.status, outcome.err) == (0, "")
    assert "Oslo: four owls and a breeze" in outcome.out


def test_an_ended_child_is_forgotten_and_its_status_is_kept() -> None:
    children = [subprocess.Popen(["false"], start_new_session=True) for _ in range(2)]
    for child in children:
        processes.register_child(child.pid)
        while processes._runs(child.pid):
            time.sleep(0.01)
        assert child.wait() == 1
    assert children[0].pid not in processes._children
