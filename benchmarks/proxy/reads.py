"""Compare the cost of alternating reads through the proxy and through FastMCP's proxy, each with one stdio server.

For each transport, the benchmark measures the processor time and latency of a call, the time of 20 concurrent clients
(over HTTP), the memory of the proxy process, and the growth of the database per read.
"""

import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from benchmarks.command_line import command_parser
from benchmarks.proxy.__main__ import _started

CLIENTS = 20
_TICKS = os.sysconf("SC_CLK_TCK")


async def measure(transport: str, calls: int) -> list[dict[str, Any]]:
    """Return the metrics of both proxies with a transport."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        commands, tools = _commands(folder), {"packetgate": "echo__read_echo", "fastmcp": "read_echo"}
        fronts = {}
        for name, command in commands.items():
            fronts[name] = await stack.enter_async_context(_opened(name, command, transport, folder))
        figures: dict[str, dict[str, Any]] = {name: {"name": name, "transport": transport} for name in fronts}
        took: dict[str, list[float]] = {name: [] for name in fronts}
        for name, (client, _, _) in fronts.items():
            for _ in range(20):
                await client.call_tool_mcp(tools[name], {})
        before = {name: _cpu_s(pid) for name, (_, pid, _) in fronts.items()}
        for _ in range(calls):
            for name, (client, _, _) in fronts.items():
                started = time.perf_counter()
                result = await client.call_tool_mcp(tools[name], {})
                took[name].append(1000 * (time.perf_counter() - started))
                assert "read_echo" in str(result.content), result.content
        await asyncio.sleep(1)  # later writes count too
        for name, (_, pid, url) in fronts.items():
            figure = figures[name]
            figure["cpu_ms"] = round(1000 * (_cpu_s(pid) - before[name]) / calls, 2)
            figure["latency_p50_ms"] = round(statistics.median(took[name]), 2)
            if url:
                figure["s_of_20_clients"] = round(await _at_once(url, tools[name], calls // 10), 2)
            figure["memory_mb"] = round(_memory_mb(pid), 1)
        with sqlite3.connect(folder / "home" / "packetgate.db") as database:
            (pages,) = database.execute("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'journal%'").fetchone()
            (rows,) = database.execute("SELECT count(*) FROM journal WHERE event = 'call_read'").fetchone()
            (threads,) = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'checkpoints'").fetchone()
        figures["packetgate"] |= {"database_bytes_a_read": round(pages / rows), "has_checkpoints": bool(threads)}
        return [*figures.values()]


def _commands(folder: Path) -> dict[str, list[str]]:
    source = (
        "from fastmcp import FastMCP\nserver = FastMCP('echo')\n\n\n@server.tool(annotations={'readOnlyHint': True})\n"
    )
    source += "def read_echo() -> str:\n    return 'read_echo'\n\n\nserver.run(show_banner=False)\n"
    (folder / "echo.py").write_text(source)
    entry = {"command": sys.executable, "args": [str(folder / "echo.py")], "trusted": True, "sandbox": "off"}
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"echo": entry}}))
    front = (
        "import json, sys\nfrom fastmcp.server import create_proxy\n"
        "front = create_proxy(json.load(open(sys.argv[1])))\n"
        "http = {'transport': 'http', 'port': int(sys.argv[3]), 'path': '/mcp'} if sys.argv[2:] else {}\n"
        "front.run(show_banner=False, **http)\n"
    )
    (folder / "front.py").write_text(front)
    plain = {"command": sys.executable, "args": [str(folder / "echo.py")]}
    (folder / "plain.json").write_text(json.dumps({"mcpServers": {"echo": plain}}))
    return {
        "packetgate": [str(Path(sys.executable).with_name("packetgate")), "proxy", "--mcp-config", str(config)],
        "fastmcp": [sys.executable, str(folder / "front.py"), str(folder / "plain.json")],
    }


@asynccontextmanager
async def _opened(
    name: str, command: list[str], transport: str, folder: Path
) -> AsyncIterator[tuple[Client[Any], int, str]]:
    """Yield a client of a proxy, the proxy's process id, and its URL if it has one."""
    home = {"PACKETGATE_HOME": str(folder / "home")}
    if transport == "stdio":
        known = _children()
        pipes = StdioTransport(command[0], command[1:], env={**os.environ, **home})
        async with Client(pipes, timeout=60) as client:
            (pid,) = _children() - known
            await _until_listed(client)
            yield client, pid, ""
        return
    options = ["--http", "--port"] if name == "packetgate" else ["--port"]
    async with (
        _started(name, "", "", [*command, *options], home) as front,
        Client(front.url, timeout=60) as client,
    ):
        await _until_listed(client)
        yield client, front.process.pid, front.url


async def _until_listed(client: Client[Any]) -> None:
    while not any(tool.name.endswith("read_echo") for tool in await client.list_tools()):  # noqa: ASYNC110
        await asyncio.sleep(0.2)


async def _at_once(url: str, tool: str, calls: int) -> float:
    async def call() -> None:
        async with Client(url, timeout=60) as client:
            for _ in range(calls):
                await client.call_tool_mcp(tool, {})

    started = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(CLIENTS)))
    return time.perf_counter() - started


def _children() -> set[int]:
    return {*map(int, Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())}


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.proxy.reads", __doc__)
    parser.add_argument("--calls", type=int, default=300)
    given = parser.parse_args()
    for transport in ("stdio", "http"):
        for figures in asyncio.run(measure(transport, given.calls)):
            print("  ".join(f"{key} {value}" for key, value in figures.items()), flush=True)


if __name__ == "__main__":
    main()
