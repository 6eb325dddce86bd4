"""A turn stopped at any point can be continued, and blocks no other process."""

import asyncio
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.turn import Continue, Finished, Say, UserInput, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext

pytestmark = pytest.mark.slow

STOPS = 40


def begin(database: Path) -> None:
    """Begin a write like another process, and roll the write back."""
    with closing(sqlite3.connect(database, timeout=20)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.rollback()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_a_turn_stopped_at_any_point_can_be_continued(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    url = request.getfixturevalue("postgres") if database == "postgres" else None
    (tmp_path / "plan.txt").write_text("xylophone\n")
    settings = Settings(home=tmp_path / "home", root=tmp_path, database_url=url)
    chance, ends = random.Random(11), Counter[str]()
    async with open_sessions(settings) as sessions:

        async def run(turn: UserInput, session: str) -> Finished:
            events = [event async for event in run_turn(sessions, turn, session, RoutingContext())]
            assert isinstance(events[-1], Finished)
            return events[-1]

        await run(Say("Read plan.txt"), "first")
        began = time.monotonic()
        await run(Say("Read plan.txt"), "second")
        took = time.monotonic() - began
        for number in range(STOPS):
            session = f"s{number}"
            turn = asyncio.create_task(run(Say("Read plan.txt"), session))
            await asyncio.sleep(chance.uniform(0, took))
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
            if url is None:
                await asyncio.to_thread(begin, settings.database)
            state = await sessions.state(session)
            if state.is_unfinished:
                assert "xylophone" in (await run(Continue(), session)).packet.response.candidate
                ends["continued"] += 1
            elif state.packet.messages:
                assert "xylophone" in state.packet.response.candidate, "the turn had ended before"
    assert ends["continued"] > STOPS // 4
