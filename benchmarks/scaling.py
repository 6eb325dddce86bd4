"""Measure packets per second on SQLite and PostgreSQL with one and two processes, and the database's own write rate.

A packet is a complete turn of `reflex` that reads a file and answers. Each process runs several turns concurrently, on
separate session threads. The benchmark measures the rows several times alternately, and prints the median.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.turn import Finished, Say, run_turn
from packetgate.gate.journal import Entry
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.state.base import new_id
from packetgate.state.context import RoutingContext

ROWS = {"one process, SQLite": ("sqlite", 1), "one, PostgreSQL": ("postgres", 1), "two, PostgreSQL": ("postgres", 2)}
AT_ONCE = 16
WARM_UP = 16


@dataclass(frozen=True)
class Load:
    """The work of each process."""

    settings: Settings
    turns: int
    work: Callable[["Load", Barrier], float]


def packets(load: Load, together: Barrier) -> float:
    """Return the duration of a process's turns in seconds, counted from the time when all processes are ready."""
    return asyncio.run(_packets(load, together))


def entries(load: Load, together: Barrier) -> float:
    """Return the duration in seconds of the same number of journal entries."""
    return asyncio.run(_entries(load, together))


async def _packets(load: Load, together: Barrier) -> float:
    room = asyncio.Semaphore(AT_ONCE)
    async with open_sessions(load.settings) as sessions:

        async def turn() -> None:
            async with room:
                events = run_turn(sessions, Say("Read notes.txt"), new_id(), RoutingContext())
                seen = [event async for event in events]
            if not isinstance(seen[-1], Finished) or "seven" not in seen[-1].packet.response.candidate:
                raise RuntimeError(f"a turn failed: {seen[-1]}")

        await asyncio.gather(*(turn() for _ in range(WARM_UP)))
        await asyncio.to_thread(together.wait)
        started = time.perf_counter()
        await asyncio.gather(*(turn() for _ in range(load.turns)))
        return time.perf_counter() - started


async def _entries(load: Load, together: Barrier) -> float:
    journal, room = open_journal(load.settings), asyncio.Semaphore(AT_ONCE)

    async def write() -> None:
        async with room:
            await journal.record(Entry("measured", new_id()))

    await write()
    await asyncio.to_thread(together.wait)
    started = time.perf_counter()
    await asyncio.gather(*(write() for _ in range(load.turns)))
    return time.perf_counter() - started


def per_second(load: Load, processes: int) -> float:
    """Return the units of work per second of all processes together."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        together, took = manager.Barrier(processes), manager.list()
        started = [context.Process(target=_one, args=(load, together, took)) for _ in range(processes)]
        for process in started:
            process.start()
        for process in started:
            process.join()
        if any(process.exitcode for process in started):
            raise RuntimeError("a process failed: its error is printed above")
        return processes * load.turns / float(max(took))


def _one(load: Load, together: Barrier, took: "list[float]") -> None:
    took.append(load.work(load, together))


@contextmanager
def databases(url: str | None) -> Iterator[dict[str, Settings]]:
    """Yield the settings of each row, by the row's name."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "notes.txt").write_text("The gate opens at seven.\n")
        yield {
            "sqlite": Settings(home=root / "home", root=root),
            "postgres": Settings(home=root / "home", root=root, database_url=url),
        }


def measure(url: str, turns: int, runs: int) -> Iterator[dict[str, object]]:
    """Yield each row with the median of its runs, and with its ratio to the first row of its kind."""
    for what, work in (("packets", packets), ("journal entries", entries)):
        found: dict[str, list[float]] = {name: [] for name in ROWS}
        for _ in range(runs):
            with databases(url) as settings:
                for name, (database, processes) in ROWS.items():
                    many = turns if work is packets else 10 * turns
                    found[name].append(per_second(Load(settings[database], many, work), processes))
        base = found[next(iter(ROWS))]
        for name, rates in found.items():
            ratios = [rate / first for rate, first in zip(rates, base, strict=True)]
            yield {
                "what": what,
                "where": name,
                "per_second": round(statistics.median(rates), 1),
                "spread": [round(min(rates), 1), round(max(rates), 1)],
                "ratio": round(statistics.median(ratios), 2),
                "runs": runs,
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="URL of an empty PostgreSQL database: postgresql://...")
    parser.add_argument("--turns", type=int, default=200, help="turns per process and run (default %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs per row (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON, one line per row")
    options = parser.parse_args()
    for row in measure(options.url, options.turns, options.runs):
        line = "{where}: {per_second} {what} a second ({spread[0]} to {spread[1]}), {ratio} times the first"
        sys.stdout.write((json.dumps(row) if options.json else line.format(**row)) + "\n")
        sys.stdout.flush()
