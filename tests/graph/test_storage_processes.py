"""Several processes on one database."""

import asyncio
from pathlib import Path

import pytest
from support.killed_turn import forking
from support.usage import record_many

from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.tools.usage.store import read_usage

pytestmark = pytest.mark.slow

PROCESSES, TURNS = 4, 25


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_concurrent_processes_create_a_database_and_record(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    url = request.getfixturevalue("postgres") if database == "postgres" else None
    settings = Settings(home=tmp_path, database_url=url)
    together = forking().Barrier(PROCESSES)
    started = [
        forking().Process(target=record_many, args=(settings, f"session {number}", TURNS, together))
        for number in range(PROCESSES)
    ]
    for process in started:
        process.start()
    await asyncio.to_thread(lambda: [process.join() for process in started])
    assert [process.exitcode for process in started] == [0] * PROCESSES
    async with open_store(settings) as store:
        assert len((await read_usage(store)).records) == PROCESSES * TURNS
        assert len((await read_usage(store, "session 1")).records) == TURNS
