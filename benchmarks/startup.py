"""Measure the start of a process up to its first answer, compared with a process that only imports LangGraph.

Ratios compare the processor time until the process exits. The benchmark also prints the elapsed time until the answer.
`ask` and `chat` answer without a model. The proxy answers a client of the official SDK that lists its tools.
"""

import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

from mcp import ClientSession, StdioServerParameters, stdio_client

from benchmarks.ratio import Ratio, Side, arguments, interleaved, show

RUNS = 10
WARM_UP = 1
REPOSITORY = Path(__file__).parents[1]
BASE = ("-c", "import langgraph.graph; print('there')")
COMMAND = ("-c", "from packetgate.connectors.command_line import main; main()")
READ = "What does README.md say about the gate?"

Environment = dict[str, str]


async def says(words: tuple[str, ...], given: str, answer: str, environment: Environment) -> float:
    """Run a process with `given` as input, and return the milliseconds until it prints `answer`."""
    started, pipe = time.perf_counter(), asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=REPOSITORY, env=environment, stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(given.encode())
    process.stdin.close()
    await process.stdout.readuntil(answer.encode())
    took = 1000 * (time.perf_counter() - started)
    await process.communicate()
    return took


async def lists(environment: Environment) -> float:
    """Start the proxy, and return the milliseconds until a client has listed its tools."""
    started = time.perf_counter()
    server = StdioServerParameters(
        command=sys.executable, args=[*COMMAND, "proxy"], env=environment, cwd=str(REPOSITORY)
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        if not (await session.list_tools()).tools:
            raise RuntimeError("the proxy listed no tools")
        return 1000 * (time.perf_counter() - started)


STARTS: dict[str, tuple[float | None, Callable[[Environment], Awaitable[float]]]] = {
    "ask, small talk": (1.4, partial(says, (*COMMAND, "ask", "hello"), "", "Hello!")),
    "ask, a file read": (1.8, partial(says, (*COMMAND, "ask", READ), "", "gate")),
    "chat": (None, partial(says, (*COMMAND, "chat"), "hello\n", "Hello!")),
    "proxy": (None, lists),
}
"""Maps each start to its goal and the function that measures it."""


async def _measure(runs: int, folder: Path) -> list[Ratio]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PACKETGATE_")}
    environment = {**kept, "PACKETGATE_HOME": str(folder)}
    answered: dict[str, list[float]] = {}

    async def processor_ms(name: str, start: Callable[[Environment], Awaitable[float]]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        answered.setdefault(name, []).append(await start(environment))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    base = "importing LangGraph"
    sides: dict[str, Side] = {base: partial(processor_ms, base, partial(says, BASE, "", "there"))}
    sides |= {name: partial(processor_ms, name, start) for name, (_, start) in STARTS.items()}
    took = await interleaved(sides, runs, WARM_UP)
    clock = {name: statistics.median(times[WARM_UP:]) for name, times in answered.items()}
    return [
        Ratio(name, took[name], took[base], goal, base, {"the clock": clock[name], "the base's": clock[base]})
        for name, (goal, _) in STARTS.items()
    ]


def measure(runs: int = RUNS) -> Iterator[Ratio]:
    """Yield the cost of each start."""
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_measure(runs, Path(folder)))


if __name__ == "__main__":
    given = arguments(__doc__ or "", RUNS)
    show(measure(given.runs), as_json=given.json)
