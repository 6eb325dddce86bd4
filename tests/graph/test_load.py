"""Many concurrent sessions run in one process on SQLite: none is lost or mixed up, and memory does not grow."""

import asyncio
import gc
import json
import os
from pathlib import Path

import pytest
from support.palettes import NIGHTLY

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.sessions import Sessions
from packetgate.connectors.turn import Asked, Finished, Reply, Say, run_turn
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.state.context import RoutingContext

pytestmark = pytest.mark.slow

SESSIONS = 500 if NIGHTLY else 100
WARM = 100 if NIGHTLY else 40
AT_ONCE = 20
GROWTH_MIB = 30
"""Allowed growth of the warm process, less than the data of all sessions in memory."""
WRITES = RoutingContext(allow_write_tools=True)


def resident_mib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def end(sessions: Sessions, turn: Say | Reply, name: str) -> Asked | Finished:
    last = [event async for event in run_turn(sessions, turn, name, WRITES)][-1]
    assert isinstance(last, Asked | Finished)
    return last


async def talk(sessions: Sessions, number: int) -> None:
    """Run three turns: an approved write, a read, and the same read again."""
    name, file, text = f"session {number}", f"note{number}.txt", f"word-{number}-word"
    asked = await end(sessions, Say(f'Write "{text}" to {file}'), name)
    assert isinstance(asked, Asked)
    assert asked.question["action_requests"][0]["args"] == {"path": file, "content": text}
    assert isinstance(await end(sessions, Reply("yes"), name), Finished)
    for _ in range(2):
        done = await end(sessions, Say(f"Read {file}"), name)
        assert isinstance(done, Finished)
        assert text in done.packet.response.candidate
        assert done.packet.header.session_id == name


@pytest.mark.timeout(1800)
async def test_concurrent_sessions_are_complete_and_separate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "root").mkdir()
    settings = Settings(home=tmp_path / "home", root=tmp_path / "root", usage_days=0)
    room, sizes = asyncio.Semaphore(AT_ONCE), dict[int, float]()
    async with open_sessions(settings) as sessions:

        async def one(number: int) -> None:
            async with room:
                await talk(sessions, number)

        for first, last in ((0, WARM), (WARM, SESSIONS)):
            await asyncio.gather(*map(one, range(first, last)))
            sizes[last] = resident_mib()
        for number in range(SESSIONS):
            packet = (await sessions.state(f"session {number}")).packet
            assert len(packet.header.lineage) == 2
            assert [message.text for message in packet.messages if message.type == "human"][1:] == [
                f"Read note{number}.txt"
            ] * 2
    entries = opened = crossed = 0
    async for row in open_journal(settings).rows():
        entries += 1
        opened += row.event == "turn_opened"
        detail = json.dumps(row.recorded_entry.entry.detail)
        crossed += f"-{row.session_id.removeprefix('session ')}-" not in detail if "-word" in detail else 0
    with capsys.disabled():
        grown = sizes[SESSIONS] - sizes[WARM]
        print(  # noqa: T201  the figures are the point
            f"\n{SESSIONS} sessions, {opened} turns, {entries} entries; {sizes[WARM]:.0f} MiB after {WARM}, "
            f"{grown:+.1f} MiB since"
        )
    assert (opened, crossed) == (SESSIONS * 3, 0)
    assert grown < GROWTH_MIB
