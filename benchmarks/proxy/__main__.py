"""Compare the proxy with FastMCP's proxy and FastMCP's search transform, in one run.

Each front is a process with an HTTP endpoint, in front of one server process with 2,000 real tools from the folder of
data sets (toucan_mcp_catalog). The benchmark measures the tokens of `tools/list`, the latency of a call, calls per
second, and the memory of the front. Calls of the fronts alternate. The metrics after `listed` are the shares of needed
tools that are on the list after `set_context`, for sets with requests.
"""

import asyncio
import json
import os
import re
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastmcp import Client

from benchmarks.command_line import add_data_option, command_parser
from benchmarks.palette.__main__ import USES, as_listed
from benchmarks.tokens.counting import count
from benchmarks.train.data import sources
from packetgate.connectors.proxy.listing import palette_request
from packetgate.ranking.choice import choose_palette
from packetgate.state.context import RoutingContext
from packetgate.state.errors import InputError
from packetgate.state.printing import compact_json

TOOLS = 2_000
CALLS = 40
AT_ONCE = 5
WARM_UP = 3
QUERIES = (
    "find restaurants near the station and check the weather there",
    "search recent papers on protein folding",
    "create an issue in the repository and assign it",
    "convert an amount from dollars to euros at today's rate",
    "list the tables of the database and count the rows of one",
)
"""The contexts for which the benchmark counts the tokens of the list."""


@dataclass(frozen=True)
class Front:
    """A process in front of the catalogue."""

    name: str
    url: str
    process: asyncio.subprocess.Process
    tool: str
    """The front's name of the called tool."""
    through: str = ""
    """The front's own tool that calls other tools; empty if they are called by name."""

    async def call(self, client: Client[Any]) -> None:
        """Call the tool once."""
        name, arguments = (self.through, {"name": self.tool, "arguments": {}}) if self.through else (self.tool, {})
        result = await client.call_tool_mcp(name, arguments)
        assert "read_echo" in str(result.content), result.content

    @property
    def memory_mb(self) -> float:
        """Return the resident memory of the process in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


async def measure(data: Path) -> list[dict[str, Any]]:
    """Return the metrics of all fronts."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fronts = [await stack.enter_async_context(front) for front in _fronts(data, folder)]
        clients = [await stack.enter_async_context(Client(one.url, mode="legacy", timeout=300)) for one in fronts]
        figures: list[dict[str, Any]] = [{"name": one.name} for one in fronts]
        for front, client, figure in zip(fronts, clients, figures, strict=True):
            figure.update(await _listed(front, client))
            for _ in range(WARM_UP):
                await front.call(client)
        took: list[list[float]] = [[] for _ in fronts]
        for _ in range(CALLS):
            for front, client, times in zip(fronts, clients, took, strict=True):
                started = time.perf_counter()
                await front.call(client)
                times.append(1000 * (time.perf_counter() - started))
        for front, figure, times in zip(fronts, figures, took, strict=True):
            figure["call_p50_ms"] = round(statistics.median(times), 1)
            figure["call_p95_ms"] = round(sorted(times)[int(0.95 * len(times))], 1)
            figure["calls_per_s"] = round(await _throughput(front), 1)
            figure["memory_mb"] = round(front.memory_mb, 1)
        return figures


async def _listed(front: Front, client: Client[Any]) -> dict[str, Any]:
    tokens = await _tokens(client)
    if front.name != "packetgate":
        return {"list_tokens": tokens}
    after = []
    for query in QUERIES:
        await client.call_tool_mcp("set_context", {"query": query})
        after.append(await _tokens(client))
    return {"list_tokens": tokens, "list_tokens_in_context": statistics.median(after), "most_tokens": max(after)}


async def _tokens(client: Client[Any]) -> int:
    tools = await client.list_tools()
    return count(compact_json([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]))


async def _throughput(front: Front) -> float:
    async def calls(number: int) -> None:
        async with Client(front.url, mode="legacy", timeout=300) as client:
            for _ in range(number):
                await front.call(client)

    started = time.perf_counter()
    await asyncio.gather(*(calls(CALLS // AT_ONCE) for _ in range(AT_ONCE)))
    return CALLS / (time.perf_counter() - started)


def _fronts(data: Path, folder: Path) -> Iterator[Any]:
    file = data / "toucan_mcp_catalog" / "tools.jsonl"
    serve = ["-m", "benchmarks.proxy.fronts"]
    entry = {"command": sys.executable, "args": [*serve, "catalogue", str(file), str(TOOLS)], "cwd": str(Path.cwd())}
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"catalogue": entry}}), encoding="utf-8")
    packetgate = str(Path(sys.executable).with_name("packetgate"))
    home = {"PACKETGATE_HOME": str(folder / "home")}
    options = ["proxy", "--http", "--mcp-config", str(config), "--port"]
    ours, read = "packetgate", "call_read_tool"
    yield _started(ours, "catalogue.read_echo", read, [packetgate, *options], home)
    for name, through in (("proxy", ""), ("search", "call_tool")):
        command = [sys.executable, *serve, name, str(config)]
        yield _started(f"fastmcp {name}", "read_echo", through, command, {})


@asynccontextmanager
async def _started(
    name: str, tool: str, through: str, command: list[str], environment: dict[str, str]
) -> AsyncIterator[Front]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *command, str(port), env={**os.environ, **environment}, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        while not _listens(port):
            if process.returncode is not None:
                raise ChildProcessError(f"{name} ended before it listened, with status {process.returncode}")
            await asyncio.sleep(0.1)
        yield Front(name, f"http://127.0.0.1:{port}/mcp", process, tool, through)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


def listed(data: Path, most: int) -> Iterator[dict[str, Any]]:
    """Yield, for each data set, the share of needed tools on the list after the request is set as context."""
    settings = RoutingContext()
    for use in USES:
        for source in sources(data, use):
            tools = as_listed(source.tools)
            queries = source.queries[:: -(-len(source.queries) // most)]
            shares = []
            for query in queries:
                palette = choose_palette(palette_request(query.text, settings, tools), tools)
                names = {entry.tool_name for entry in palette.entries}
                shares.append(statistics.fmean(bool(group & names) for group in query.wanted))
            yield {
                "set": source.name,
                "tools": len(tools),
                "requests": len(queries),
                "listed": statistics.fmean(shares),
            }


def main() -> None:
    """Run the benchmark from the command line."""
    parser = command_parser("benchmarks.proxy", __doc__)
    add_data_option(parser)
    parser.add_argument("--most", type=int, default=200, help="maximum number of requests per set, evenly spread")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per front and per set")
    given = parser.parse_args()
    if not given.data:
        parser.error("give --data or PACKETGATE_DATA")
    if not given.data.is_dir():
        parser.error(f"{given.data}: there is no such folder of data sets")
    try:
        by_set = list(listed(given.data, given.most))
    except InputError as error:
        parser.error(str(error))
    for figures in [*asyncio.run(measure(given.data)), *by_set]:
        _show(figures, as_json=given.json)


def _show(figures: dict[str, Any], *, as_json: bool) -> None:
    text = "  ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items()
    )
    print(json.dumps(figures) if as_json else text, flush=True)


if __name__ == "__main__":
    main()
