"""A turn in a process that kills itself during the turn."""

import asyncio
import multiprocessing
import os
import signal
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from typing import Any

from packetgate.graph.composition import open_graph
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext

EVENTS = ["updates", "checkpoints"]
"""The counted events: the changes of each stage, and each checkpoint. The process dies between two events."""


@dataclass(frozen=True)
class KilledTurn:
    """A turn, up to the event after which its process dies."""

    settings: Settings
    session: str
    given: Any
    """The input of the graph: a turn's input, a `Command`, or None to continue."""
    context: RoutingContext
    events: int


def forking() -> ForkServerContext:
    """Return a context that forks processes after importing the rooms once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [
            "packetgate.graph.composition",
            "packetgate.toolsets.servers.opening",
            "aiosqlite",
            "packetgate.toolsets.servers.connection",
        ]
    )
    return context


def dies(turn: KilledTurn) -> bool:
    """Run the turn; return whether it was killed before its end."""
    process = forking().Process(target=_run, args=(turn,))
    process.start()
    process.join()
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode == -signal.SIGKILL


def _run(turn: KilledTurn) -> None:
    asyncio.run(_run_until_killed(turn))


async def _run_until_killed(turn: KilledTurn) -> None:
    async with open_graph(turn.settings) as opened:
        events = opened.graph.astream(
            turn.given,
            {"configurable": {"thread_id": turn.session}},
            context=turn.context,
            stream_mode=EVENTS,
            durability="sync",
        )
        seen = 0
        async for _ in events:
            seen += 1
            if seen == turn.events:
                os.kill(os.getpid(), signal.SIGKILL)
