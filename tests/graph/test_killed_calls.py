"""Processes are killed at random: no turn is lost, no write runs twice, and questions ask about unknown writes."""

import asyncio
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from support.counting import Hotel, asked, events, finished, killed, killed_in_call, started
from support.mcp_servers import until
from support.palettes import NIGHTLY

from packetgate.connectors.turn import Asked, Continue, Finished, Reply, Resuming, Say
from packetgate.gate.journal import ENDED, STARTED
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.state.errors import ConfigError
from packetgate.state.transitions import ToolExecutionStatus

pytestmark = pytest.mark.slow

KILLS = {"sqlite": 100 if NIGHTLY else 20, "postgres": 25 if NIGHTLY else 4}
RACES = 25 if NIGHTLY else 4


@pytest.fixture
def hotel(tmp_path: Path) -> Hotel:
    return Hotel(tmp_path)


@pytest.fixture
def settings(tmp_path: Path, hotel: Hotel) -> Settings:
    return hotel.settings(tmp_path / "home", None)


async def unfinished_writes(settings: Settings, session: str) -> int:
    """Return the number of writes of a session without a recorded end."""
    runs: Counter[str] = Counter()
    async for row in open_journal(settings).rows(session):
        entry = row.recorded_entry.entry
        if entry.detail.get("tool") == "hotel.book_room":
            runs["left"] += {STARTED: 1, ENDED: -1}.get(entry.event, 0)
    return runs["left"]


async def finish_and_count(settings: Settings, hotel: Hotel, session: str, room: str, text: str) -> Counter[str]:
    """Continue a turn after a kill, check its end, and return the counted events."""
    doubtful = await unfinished_writes(settings, session)
    was_booked = hotel.counted(room)["booked"] > 0
    end = await finished(settings, session, hotel, room, text)
    packet = end.finished.packet
    assert packet.messages[-1].type == "ai", "the turn has its answer"
    (call,) = packet.routing.all_calls
    done = hotel.counted(room)
    if "Book" in text:
        assert done["booked"] == 1
        assert end.doubts == doubtful <= 1, "the user is asked about each unfinished write, and about nothing else"
        assert len(hotel.keys(room)) == 1
        assert call.status in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.UNKNOWN}
        assert (call.status is ToolExecutionStatus.UNKNOWN) == bool(doubtful and was_booked)
    else:
        assert end.doubts == 0
        assert done["checked"] >= 1
        assert call.status is ToolExecutionStatus.EXECUTED
        assert f"{room} costs nothing" in packet.response.candidate
    return Counter(turns=1, asked=end.doubts, booked=done["booked"], checked_again=max(done["checked"] - 1, 0))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_a_turn_killed_at_a_random_point_completes(
    request: pytest.FixtureRequest, tmp_path: Path, hotel: Hotel, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = request.getfixturevalue("postgres") if database == "postgres" else None
    settings = hotel.settings(tmp_path / "home", url)
    chance, counts = random.Random(11), Counter[str]()  # random points, identical in every run
    for number in range(KILLS[database]):
        session = room = f"r{number}"
        where = chance.choice(["before", "after", "before", "after", "any"])
        text = f'{chance.choice(["Book the room", "Book the room", "Get the price of"])} "{room}"'
        turn: Say | Reply = Say(text)
        if "Book" in text:
            await asked(settings, session, text)
            turn = Reply("yes")
        if where == "any":
            process = started(settings, session, turn)
            await asyncio.sleep(chance.uniform(0, 1.5))
            await killed(hotel, process)
        else:
            hotel.hold(where)
            await killed_in_call(hotel, room, where, started(settings, session, turn))
        counts += await finish_and_count(settings, hotel, session, room, text)
        counts[f"killed {where}"] += 1
    with capsys.disabled():
        print(f"\n{database}: {dict(counts)}")  # noqa: T201  the figures are the point
    assert counts["turns"] == KILLS[database]
    assert counts["asked"] > 0


@pytest.mark.timeout(1800)
async def test_killing_the_winner_of_two_concurrent_answers_runs_nothing_twice(
    settings: Settings, hotel: Hotel, capsys: pytest.CaptureFixture[str]
) -> None:
    counts, chance = Counter[str](), random.Random(7)
    for number in range(RACES):
        session = room = f"r{number}"
        text, where = f'Book the room "{room}"', chance.choice(["before", "after"])
        await asked(settings, session, text)
        hotel.hold(where)
        await killed_in_call(hotel, room, where, *(started(settings, session, Reply("yes")) for _ in range(2)))
        counts += await finish_and_count(settings, hotel, session, room, text)
    with capsys.disabled():
        print(f"\nraces: {dict(counts)}")  # noqa: T201
    assert counts["asked"] == counts["booked"] == RACES


async def test_no_new_turn_starts_over_an_interrupted_write(settings: Settings, hotel: Hotel) -> None:
    """Even the same request, repeated by a user who saw no answer, starts no turn."""
    text = 'Book the room "r1"'
    await asked(settings, "s", text)
    hotel.hold("after")
    await killed_in_call(hotel, "r1", "after", started(settings, "s", Reply("yes")))
    received = await events(settings, "s", Say(text))
    assert Resuming() in received
    assert isinstance(received[-1], Asked)
    assert "it is not known whether it finished: run it again?" in received[-1].question["action_requests"][0]["about"]
    assert isinstance((await events(settings, "s", Reply("no")))[-1], Finished)
    assert hotel.counted("r1")["booked"] == 1
    received = await events(settings, "s", Say('Get the price of "r2"'))
    assert Resuming() not in received
    assert "r2 costs nothing" in received[-1].packet.response.candidate


async def test_an_unwritable_journal_ends_the_turn_without_an_unknown_call(
    settings: Settings, hotel: Hotel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the turn resumes, Packetgate asks about the call, as it does after a kill."""
    monkeypatch.setattr("packetgate.graph.journal.SQLITE_TIMEOUT_S", 0.2)
    await asked(settings, "s", 'Book the room "r1"')
    hotel.hold("after")
    turn = asyncio.create_task(events(settings, "s", Reply("yes")))
    await until(lambda: hotel.counted("r1")["held-after"] > 0)
    with closing(sqlite3.connect(settings.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        hotel.release()
        with pytest.raises(ConfigError, match=r"packetgate\.db"):
            await turn
    end = (await events(settings, "s", Continue()))[-1]
    assert isinstance(end, Asked)
    assert "it is not known whether it finished" in end.question["action_requests"][0]["about"]
    assert hotel.counted("r1")["booked"] == 1


async def test_lost_checkpoints_do_not_repeat_calls(settings: Settings, hotel: Hotel) -> None:
    """Without the newest checkpoints, the journal still contains the executed calls."""
    await asked(settings, "s", 'Book the room "r1"')
    assert isinstance((await events(settings, "s", Reply("yes")))[-1], Finished)
    with closing(sqlite3.connect(settings.database)) as database, database:
        ids = [one for (one,) in database.execute("SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id")]
        lost = [(one,) for one in ids[-5:]]  # all checkpoints since the user's approval
        database.executemany("DELETE FROM checkpoints WHERE checkpoint_id = ?", lost[1:])
        database.executemany("DELETE FROM writes WHERE checkpoint_id = ?", lost)
    end = (await events(settings, "s", Continue()))[-1]
    assert isinstance(end, Finished)
    assert "r1 is booked" in end.packet.response.candidate
    assert hotel.counted("r1") == {"booked": 1}
