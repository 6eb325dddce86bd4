"""A turn waits for the turn of another process on its session."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Finished, Reply, Say, Waiting, run_turn
from packetgate.graph.settings import Settings
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import SessionError

WRITES = RoutingContext(allow_write_tools=True)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Sessions, Sessions]]:
    """Two graphs on one database, as in two processes."""
    (tmp_path / "root").mkdir()
    settings = Settings(home=tmp_path / "home", root=tmp_path / "root")
    async with open_sessions(settings) as mine, open_sessions(settings) as theirs:
        yield mine, theirs


async def test_a_turn_waits_for_the_other_process(two: tuple[Sessions, Sessions]) -> None:
    mine, theirs = two
    turn = run_turn(mine, Say("Hello"), "s", WRITES)
    async with theirs.lease("s"):
        assert await anext(turn) == Waiting()
        rest = asyncio.create_task(anext(turn))
        assert (await asyncio.wait([rest], timeout=0.3))[0] == set()
    assert not isinstance(await rest, Waiting)
    assert isinstance([event async for event in turn][-1], Finished)


async def test_the_second_answer_is_not_used(two: tuple[Sessions, Sessions]) -> None:
    mine, theirs = two
    assert isinstance(await _end(mine, Say('Write "seven" to new.txt')), Asked)
    late = run_turn(mine, Reply("no"), "s", WRITES)
    early = run_turn(theirs, Reply("yes"), "s", WRITES)
    await anext(early)
    assert await anext(late) == Waiting()
    assert isinstance([event async for event in early][-1], Finished)
    with pytest.raises(SessionError) as caught:
        await anext(late)
    assert caught.value.code == Code.QUESTION_NOT_OPEN


async def _end(sessions: Sessions, turn: Say | Reply) -> object:
    return [event async for event in run_turn(sessions, turn, "s", WRITES)][-1]
