"""Compare a call of an MCP tool through the hub with the official SDK's session and LangChain's adapters.

Each side starts the same server in its own process, on standard input and output. `langchain.mcp` keeps its session
open, as the hub does. langchain-mcp-adapters opens a session for every call, as documented, or keeps one session if
configured. It needs an older SDK and is installed into its own environment. If that fails, the benchmark omits it.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from langchain_core._api import suppress_langchain_beta_warning
from mcp import ClientSession, StdioServerParameters, stdio_client

from benchmarks.environment import make_environment
from benchmarks.ratio import Ratio, Side, arguments, interleaved, show
from packetgate.gate.facts import Facts, RequestedCall
from packetgate.gate.gate import Gate
from packetgate.gate.journal import MemoryJournal
from packetgate.state.base import new_id
from packetgate.state.errors import InputError
from packetgate.state.printing import compact_json
from packetgate.state.sections import Header
from packetgate.toolsets.servers.config import load_config
from packetgate.toolsets.servers.opening import open_hub

HERE = Path(__file__).parent
SERVER = str(HERE / "server.py")
ADAPTERS = "langchain-mcp-adapters>=0.3.2,<0.4"
RUNS = 50
WARM_UP = 5
PATIENCE_S = 60.0
FEW = 3
"""Number of runs if every call starts a server."""
AT_ONCE = {1: "one call", 32: "32 calls at once"}
OURS, SDK = "packetgate", "the SDK's session"
GOALS = {SDK: 1.2}
ARGUMENTS = {"text": "hello"}

Call = Callable[[], Awaitable[object]]
Ask = Callable[[str], Awaitable[float]]
"""Makes a number of calls with langchain-mcp-adapters, and returns their duration."""


async def ours(folder: Path, stack: AsyncExitStack) -> tuple[Call, Call]:
    """Return a call through our hub, and a call through the gate, which judges and journals the call."""
    entry = {"command": sys.executable, "args": [SERVER], "trusted": True}
    (folder / "mcp.json").write_text(compact_json({"mcpServers": {"echo": entry}, "builtin": False}))
    config = load_config(folder / "mcp.json")
    opened = await stack.enter_async_context(
        await open_hub(config, folder, folder / "logs", None, patience_s=PATIENCE_S)
    )
    catalogue, gate = await opened.catalogue(), Gate(MemoryJournal(), opened.call)

    async def judged() -> object:
        header = Header(packet_id=new_id(), session_id="benchmark", origin="benchmark")
        facts = Facts(header, catalogue, frozenset(catalogue), words="Read the echo of hello", renames_calls=True)
        call, _ = await gate.request(RequestedCall("echo.read_echo", ARGUMENTS), facts)
        proposal = await gate.run(await gate.record(await gate.propose((call,), facts)))
        return proposal.calls[0].result

    return lambda: opened.call("echo.read_echo", ARGUMENTS), judged


async def sdk(stack: AsyncExitStack) -> Call:
    """Return a call over a session of the official SDK."""
    streams = await stack.enter_async_context(
        stdio_client(StdioServerParameters(command=sys.executable, args=[SERVER]))
    )
    session = await stack.enter_async_context(ClientSession(*streams))
    await session.initialize()
    return lambda: session.call_tool("read_echo", ARGUMENTS)


async def langchain(stack: AsyncExitStack) -> Call:
    """Return a call of a tool of LangChain's own adapter, whose session stays open."""
    with suppress_langchain_beta_warning():
        from langchain.mcp import MCPAdapter
    target = {"mcpServers": {"echo": {"command": sys.executable, "args": [SERVER]}}}
    adapter = await stack.enter_async_context(MCPAdapter(target))
    (tool,) = await adapter.list_tools()
    return lambda: tool.ainvoke(ARGUMENTS)


async def timed(call: Call, at_once: int) -> float:
    """Return the duration of concurrent calls in milliseconds.

    Raises:
        RuntimeError: a call got no answer.
    """
    started = time.perf_counter()
    answers = await asyncio.gather(*(call() for _ in range(at_once)))
    took = 1000 * (time.perf_counter() - started)
    if not all(ARGUMENTS["text"] in str(one) for one in answers):
        raise RuntimeError(f"a call was answered {answers[0]}")
    return took


@asynccontextmanager
async def adapters(folder: Path) -> AsyncIterator[Ask]:
    """Start langchain-mcp-adapters in its own process.

    Raises:
        InputError: its environment cannot be created.
    """
    python = await asyncio.to_thread(make_environment, folder / "adapters", "langchain-mcp-adapters", ADAPTERS)
    process = await asyncio.create_subprocess_exec(
        python, HERE / "adapters.py", sys.executable, SERVER,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    into, out = process.stdin, process.stdout
    assert into is not None
    assert out is not None

    async def ask(what: str) -> float:
        into.write(f"{what}\n".encode())
        return float(await out.readline())

    try:
        yield ask
    finally:
        into.close()
        await process.wait()


async def _measure(runs: int) -> list[Ratio]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        through_hub, judged = await ours(folder, stack)
        calls = {OURS: through_hub, SDK: await sdk(stack), "langchain.mcp": await langchain(stack)}
        ask: Ask | None = None
        try:
            ask = await stack.enter_async_context(adapters(folder))
        except InputError as error:
            print(f"benchmarks.mcp_calls: langchain-mcp-adapters is left out: {error}", file=sys.stderr)
        ratios = []
        for number, name in AT_ONCE.items():
            sides: dict[str, Side] = {one: partial(timed, call, number) for one, call in calls.items()}
            slow: dict[str, Side] = {}
            if ask is not None:
                sides["langchain-mcp-adapters, one session"] = partial(ask, f"kept {number}")
                slow = {OURS: sides[OURS], "langchain-mcp-adapters": partial(ask, f"{number}")}
            for group, most, warm_up in ((sides, runs, WARM_UP), (slow, min(runs, FEW), 0)):
                took = await interleaved(group, most, warm_up)
                ratios += [Ratio(name, took[OURS], took[one], GOALS.get(one), one) for one in [*group][1:]]
            pair: dict[str, Side] = {
                one: partial(timed, call, number) for one, call in ((OURS, judged), (SDK, calls[SDK]))
            }
            took = await interleaved(pair, runs, WARM_UP)
            ratios.append(Ratio(f"{name}, judged and journaled", took[OURS], took[SDK], GOALS[SDK], SDK))
        return ratios


def measure(runs: int = RUNS) -> Iterator[Ratio]:
    """Yield the ratios of call durations."""
    yield from asyncio.run(_measure(runs))


if __name__ == "__main__":
    given = arguments(__doc__ or "", RUNS)
    show(measure(given.runs), as_json=given.json)
