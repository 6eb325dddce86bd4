"""`packetgate` killed in the middle of a turn, and `packetgate answer` going on with it."""

import asyncio
import signal
from pathlib import Path

import pytest
from support.command_line import COMMAND, CommandLine
from support.mcp_servers import alive, until


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_a_killed_ask_goes_on(cli: CommandLine, slow_weather: Path, how: signal.Signals) -> None:
    command = [str(COMMAND), "ask", 'Get the weather of "Oslo"', "--session", "s", "--mcp-config", str(slow_weather)]
    trace = slow_weather.with_name("pid")
    process = await asyncio.create_subprocess_exec(*command, cwd=cli.folder, env=cli.environment)
    await until(lambda: trace.exists() and bool(trace.read_text()))
    process.send_signal(how)
    assert await process.wait() in {-how, 128 + how}
    server = int(trace.read_text())
    await until(lambda: not alive(server))
    slow_weather.with_name("may_answer").touch()
    outcome = cli.run("answer", "--session", "s", "--mcp-config", str(slow_weather))
    assert (outcome.status, outcome.err) == (0, "")
    assert "Oslo: four owls and a breeze" in outcome.out
    assert "execute_tool" in outcome.out


def test_an_answer_goes_to_the_question_of_another_process(cli: CommandLine) -> None:
    asked = cli.run("ask", 'Write "seven" to new.txt', "--session", "s", "--allow-writes")
    assert asked.status == 3
    assert not (cli.folder / "new.txt").exists()
    answered = cli.run("answer", "yes", "--session", "s")
    assert (answered.status, answered.err) == (0, "")
    assert (cli.folder / "new.txt").read_text() == "seven"


def test_nothing_is_left_to_go_on_with(cli: CommandLine) -> None:
    cli.run("ask", "Hello", "--session", "s")
    outcome = cli.run("answer", "--session", "s")
    assert outcome.status == 2
    assert outcome.err == "packetgate: session 's' has no unfinished turn: ask something with `packetgate ask`\n"
