"""A session runs one turn at a time, across processes. A lock ends with its process."""

import asyncio
import contextlib
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from support.killed_turn import forking

from packetgate.graph.leases import open_leases
from packetgate.graph.settings import Settings


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return Settings(home=tmp_path / "home", database_url=url)


def hold(settings: Settings, taken: Event) -> None:
    """Take the lock of session `a`, and keep it."""

    async def holding() -> None:
        async with open_leases(settings) as leases, leases.hold("a"):
            taken.set()
            await asyncio.Event().wait()

    asyncio.run(holding())


@pytest.mark.slow
async def test_a_kill_releases_the_lock(settings: Settings) -> None:
    taken = forking().Event()
    process = forking().Process(target=hold, args=(settings, taken))
    process.start()
    await asyncio.to_thread(taken.wait)
    async with open_leases(settings) as leases:
        assert await leases.is_taken("a")
        assert not await leases.is_taken("b")
        waiting = asyncio.create_task(entered(settings))
        assert (await asyncio.wait([waiting], timeout=0.3))[0] == set()
        process.kill()
        await waiting
        assert not await leases.is_taken("a")


async def entered(settings: Settings) -> None:
    async with open_leases(settings) as leases, leases.hold("a"):
        pass


async def test_a_lock_has_one_holder(settings: Settings) -> None:
    inside, most = 0, 0

    async def turn() -> None:
        nonlocal inside, most
        async with open_leases(settings) as leases, leases.hold("a"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(turn() for _ in range(8)))
    assert most == 1


async def test_a_cancelled_waiter_releases_the_lock(settings: Settings) -> None:
    async with open_leases(settings) as mine, open_leases(settings) as theirs:
        for _ in range(20):
            waiting = asyncio.create_task(mine.is_taken("a"))
            await asyncio.sleep(0)
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
            async with asyncio.timeout(20), theirs.hold("a"):
                pass
        async with theirs.hold("a"):
            waiting = asyncio.create_task(entered(settings))
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert not await mine.is_taken("a")
    assert settings.database_url or not [*(settings.home / "leases").iterdir()]
