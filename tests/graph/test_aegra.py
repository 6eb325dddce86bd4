"""If one of two Aegra servers on a shared database is killed, every thread completes, and no write runs twice."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import BadRequestError
from support.aegra import Aegra, install_aegra, serve_redis
from support.booking import Hotel
from support.langgraph_server import GRAPH, turn_input
from support.mcp_servers import until

THREADS, TWICE, KILLED_AFTER = 20, 3, 3
"""Numbers of threads, of threads whose answer goes to both servers, and of bookings that run at the kill."""
WRITES = {"allow_write_tools": True}


@pytest.fixture
def aegra(tmp_path: Path, postgres: str) -> Iterator[Aegra]:
    with serve_redis(tmp_path) as redis:
        yield Aegra(install_aegra(tmp_path), redis, postgres)


async def ended(client: LangGraphClient, thread: str, **given: Any) -> Any:
    """Run or continue a turn, and return the thread's state."""
    run = await client.runs.create(thread, GRAPH, context=WRITES, **given)
    await client.runs.join(thread, run["run_id"])
    return await client.threads.get_state(thread)


def waits(state: Any) -> list[Any]:
    """Return the open question of a thread."""
    return [interrupt["value"] for task in state["tasks"] for interrupt in task["interrupts"]]


@pytest.mark.timeout(900)
async def test_threads_complete_when_one_of_two_servers_dies(
    aegra: Aegra, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hotel = Hotel(tmp_path)
    folders = [tmp_path / name for name in ("here", "there")]
    for folder in folders:
        folder.mkdir()
    first, second = (aegra.server(folder, hotel.configure(folder)) for folder in folders)
    async with first as here, second as there:
        threads: dict[str, str] = {}

        async def ask(room: str) -> None:
            threads[room] = (await here.client.threads.create())["thread_id"]
            state = await ended(here.client, threads[room], input=turn_input(f'Book the room "{room}"'))
            (question,) = waits(state)
            assert question["action_requests"][0]["args"] == {"room": room}

        async def decide(room: str) -> int:
            """Approve, but check the room before approving a repeated call; return the number of such questions."""
            yes, again = {"resume": "yes"}, 0
            state = await ended(there.client, threads[room], command=yes)
            while waits(state):
                again += 1
                assert again < 4, state
                word = "no" if hotel.bookings(room) else "yes"
                state = await ended(there.client, threads[room], command={"resume": word})
            assert not state["next"]
            assert state["values"]["messages"][-1]["type"] == "ai"
            return again

        async def decide_twice(room: str) -> None:
            both = (ended(server.client, threads[room], command={"resume": "yes"}) for server in (here, there))
            await asyncio.gather(*both, return_exceptions=True)
            with pytest.raises(BadRequestError, match="not in interrupted state"):
                await ended(there.client, threads[room], command={"resume": "yes"})
            assert hotel.bookings(room) == 1

        async def dies() -> int:
            await until(lambda: hotel.bookings() >= KILLED_AFTER and hotel.in_calls(here.process.pid, "booked"), 300)
            here.process.kill()
            await here.process.wait()
            return hotel.in_calls(here.process.pid, "booked")

        rooms = [f"r{number}" for number in range(THREADS)]
        await asyncio.gather(*map(ask, rooms))
        assert not hotel.bookings()
        await asyncio.gather(*map(decide_twice, rooms[:TWICE]))
        asked_again, in_calls = await asyncio.gather(asyncio.gather(*map(decide, rooms[TWICE:])), dies())
    done = Counter(room for what, room, _ in hotel.log if what == "booked")
    with capsys.disabled():
        print(f"\n{THREADS} threads; killed with {in_calls} open bookings; {sum(asked_again)} asked again")  # noqa: T201
    assert in_calls >= 1
    assert sum(asked_again) >= 1, "the user is asked about an unfinished write"
    assert done == dict.fromkeys(rooms, 1)
