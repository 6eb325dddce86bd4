"""The proxy as a process: its output, its exit on signals, and its question after a kill."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from support.command_line import CommandLine
from support.fork_server import COMMAND
from support.mcp_servers import alive, until
from support.plain_server import configure, entry

from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings

CALLS = 12
SERVER = """
@server.reading
async def get_pid(number: int) -> str:
    "Get the process id of the clock."
    return str(os.getpid())
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """An `mcp.json` with a server that returns its process id."""
    return configure(tmp_path / "mcp.json", clock=entry(SERVER))


async def start(cli: CommandLine, config: Path, *options: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(str(COMMAND), "proxy", "--mcp-config", str(config), *options),
        cwd=cli.folder,
        env=cli.environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def request(process: asyncio.subprocess.Process, number: int, method: str, params: dict[str, Any]) -> Any:
    """Send a request over standard input, and return its result."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
    process.stdin.write(b"\n")
    async for line in process.stdout:
        answer = json.loads(line)
        if answer.get("id") == number:
            return answer["result"]
    raise AssertionError((await process.stderr.read()).decode() if process.stderr else "")


async def all_are_recorded(cli: CommandLine, server_pid: int) -> None:
    await until(lambda: not alive(server_pid))
    assert len(await open_journal(Settings(home=cli.home)).event_entries("call_read")) == CALLS


def test_standard_output_has_only_the_protocol(cli: CommandLine) -> None:
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
    outcome = cli.run("proxy", given=hello + b"\n")
    assert (outcome.status, outcome.err) == (0, "")
    assert [json.loads(line)["id"] for line in outcome.out.splitlines()] == [1]


NOT_FOR_READS = {"langgraph", "langgraph_sdk", "langsmith", "numpy", "onnxruntime", "openai", "langchain_openai"}


async def test_a_read_loads_no_langgraph_and_a_change_does(cli: CommandLine, tmp_path: Path) -> None:
    both = f"{SERVER}\n@server.tool\nasync def set_hands(hour: str) -> str:\n    'Set the hands.'\n    return hour\n"
    imports, config = tmp_path / "imports", configure(tmp_path / "mcp.json", clock=entry(both))
    proxy = StdioTransport(
        str(COMMAND),
        ["proxy", "--mcp-config", str(config)],
        env={**cli.environment, "PYTHONPROFILEIMPORTTIME": "1"},
        cwd=str(cli.folder),
        log_file=imports,
    )

    def packages() -> set[str]:
        lines = (line.rpartition("|") for line in imports.read_text().splitlines() if line.startswith("import time:"))
        return {module.strip().partition(".")[0] for *_, module in lines}

    async with Client(proxy, timeout=60) as client:
        call = {"name": "clock.get_pid", "arguments": {"number": "1"}}
        assert (await client.call_tool("call_read_tool", call)).structured_content["status"] == "executed"
        assert "fastmcp" in packages()
        assert not NOT_FOR_READS & packages()
        call = {"name": "clock.set_hands", "arguments": {"hour": "3"}}
        result = await client.call_tool("call_changing_tool", call, raise_on_error=False)
        assert result.structured_content["status"] == "skipped"
        await until(lambda: "langgraph" in packages())


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_stdio_proxy(cli: CommandLine, config: Path, how: signal.Signals) -> None:
    process = await start(cli, config)
    await request(process, 0, "initialize", HELLO)
    for number in range(1, CALLS + 1):
        params = {"name": "call_read_tool", "arguments": {"name": "clock.get_pid", "arguments": {"number": number}}}
        result = await request(process, number, "tools/call", params)
    process.send_signal(how)
    assert await process.wait() == 128 + how
    await all_are_recorded(cli, int(result["content"][0]["text"]))


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_http_proxy(cli: CommandLine, config: Path, how: signal.Signals) -> None:
    process = await start(cli, config, "--http", "--port", "0")
    assert process.stderr is not None
    url = (await process.stderr.readline()).decode().split()[-1]
    async with Client(url, mode="legacy") as client:
        for number in range(CALLS):
            call = {"name": "clock.get_pid", "arguments": {"number": number}}
            result = await client.call_tool("call_read_tool", call)
    process.send_signal(how)
    assert await process.wait() == 0
    await all_are_recorded(cli, int(result.content[0].text))


BELL = """
@server.tool
async def ring(day: str) -> str:
    "Ring the bell once."
    folder.note("log", f"rung {day}")
    await folder.until("quick")
    return "it rang"
"""
RULE = '[[policy.rules]]\neffect = "allow"\ntool = "bell.*"\n'


@pytest.mark.slow
async def test_repeating_a_write_that_a_kill_interrupted_asks_the_user(cli: CommandLine) -> None:
    log, config = cli.folder / "log", cli.folder / "mcp.json"
    configure(config, bell=entry(BELL, cli.folder, trusted=False))
    (cli.folder / "packetgate.toml").write_text(RULE)
    wanted = {"name": "call_changing_tool", "arguments": {"name": "bell.ring", "arguments": {"day": "monday"}}}
    other = {"name": "call_changing_tool", "arguments": {"name": "bell.ring", "arguments": {"day": "sunday"}}}

    killed = await start(cli, config, "--allow-writes")
    await request(killed, 0, "initialize", HELLO)
    ringing = asyncio.create_task(request(killed, 1, "tools/call", wanted))
    await until(lambda: log.exists() and log.read_text() == "rung monday\n")
    killed.kill()
    await killed.wait()
    with pytest.raises(AssertionError):
        await ringing

    (cli.folder / "quick").touch()
    process = await start(cli, config, "--allow-writes")
    await request(process, 0, "initialize", HELLO)
    assert not (await request(process, 1, "tools/call", other))["isError"]
    again = await request(process, 2, "tools/call", wanted)
    assert "The same call was made before" in again["content"][0]["text"]
    assert log.read_text() == "rung monday\nrung sunday\n"
    session = again["content"][0]["text"].partition("--session ")[2].split()[0]
    answer = ("answer", "--session", session, "--mcp-config", str(config))
    await asyncio.to_thread(cli.run, *answer)
    outcome = await asyncio.to_thread(cli.run, *answer, "yes")
    assert outcome.status == 0, outcome.err
    answered = await request(process, 3, "tools/call", wanted)
    assert answered["content"][0]["text"] == "it rang"
    assert log.read_text() == "rung monday\nrung sunday\nrung monday\n"
    process.terminate()
    await process.wait()
