"""Processes that answer the same question at once."""

import asyncio
from multiprocessing.synchronize import Barrier
from typing import Any

from support.killed_turn import forking

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.turn import Asked, Finished, Reply, Say, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext
from packetgate.state.errors import SessionError

FINISHED, ASKED, REFUSED = 0, 3, 4
"""Exit statuses: the turn ended, it asks again, or the answer came too late."""


async def ask(settings: Settings, session: str, text: str) -> Asked:
    """Run a turn, with writes switched on, to its question."""
    return asked(await events(settings, session, Say(text), RoutingContext(allow_write_tools=True)))


async def events(settings: Settings, session: str, turn: Any, context: RoutingContext | None = None) -> list[Any]:
    """Run a turn as a separate process would, and return its events."""
    async with open_sessions(settings) as sessions:
        return [event async for event in run_turn(sessions, turn, session, context or RoutingContext())]


def asked(told: list[Any]) -> Asked:
    """Return the question with which a turn ended."""
    assert isinstance(told[-1], Asked), told[-1]
    return told[-1]


async def race(settings: Settings, session: str, *values: str) -> list[int]:
    """Let a process for each value answer the session's question, all at once; return their exit statuses."""
    together = forking().Barrier(len(values))
    started = [forking().Process(target=_answer, args=(settings, session, value, together)) for value in values]
    for process in started:
        process.start()
    await asyncio.to_thread(lambda: [process.join() for process in started])
    return [process.exitcode or 0 for process in started]


def _answer(settings: Settings, session: str, value: str, together: Barrier) -> None:
    raise SystemExit(asyncio.run(_reply(settings, session, value, together)))


async def _reply(settings: Settings, session: str, value: str, together: Barrier) -> int:
    async with open_sessions(settings) as sessions:
        await asyncio.to_thread(together.wait)
        try:
            told = [event async for event in run_turn(sessions, Reply(value), session, RoutingContext())]
        except SessionError:
            return REFUSED
    return FINISHED if isinstance(told[-1], Finished) else ASKED
