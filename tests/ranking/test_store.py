"""Confirmed uses in each of LangGraph's stores for one machine."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from packetgate.graph.records import forget_records
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.ranking.learning import ConfirmedUse
from packetgate.ranking.store import USES_NAMESPACE, delete_old_uses, store_use
from packetgate.state.base import now
from packetgate.state.sections import Header

STORES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]
SESSIONS = ["", ".", "%", "a", "a.b", "a%2Eb", "A", "a_b", "a*b", "[a]", "\N{SNOWMAN}", "langgraph", "with space"]


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseStore]:
    """An empty store."""
    if request.param == "memory":
        yield InMemoryStore()
        return
    url = request.getfixturevalue("postgres") if request.param == "postgres" else None
    async with open_store(Settings(home=tmp_path, database_url=url)) as opened:
        yield opened
        for item in await opened.asearch((), limit=100_000):
            await opened.adelete(item.namespace, item.key)


async def save(store: BaseStore, tool: str, session: str = "s", days_ago: float = 0.0) -> None:
    at = now() - timedelta(days=days_ago)
    use = ConfirmedUse(tool=tool, asked="Go on", context_type="general", session_id=session, at=at)
    await store_use(store, Header(session_id=session), tool, use)


async def tools(store: BaseStore) -> set[str]:
    return {item.value["tool"] for item in await store.asearch(USES_NAMESPACE, limit=100_000)}


async def test_a_use_is_stored_once_and_sessions_are_separate(store: BaseStore) -> None:
    for number, session in enumerate(SESSIONS):
        for _ in range(2):
            await save(store, f"t{number}", session)
    assert len(await store.asearch(USES_NAMESPACE, limit=100)) == len(SESSIONS)
    for number, session in enumerate(SESSIONS):
        await forget_records(store, session)
        assert await tools(store) == {f"t{later}" for later in range(number + 1, len(SESSIONS))}


async def test_only_old_uses_are_deleted(store: BaseStore) -> None:
    other = ("packetgate", "learners")
    await store.aput(other, "k", {"at": "", "day": 0})
    for age in (0, 89, 92, 400):
        await save(store, f"of{age}", days_ago=age)
    await delete_old_uses(store, 90)
    assert await tools(store) == {"of89", "of0"}
    await delete_old_uses(store, 7, most=0)
    assert await tools(store) == set()
    assert await store.aget(other, "k") is not None


async def test_the_oldest_uses_are_deleted(store: BaseStore) -> None:
    for age in range(11):
        await save(store, f"of{age}", f"s{age % 3}", days_ago=age)
    await delete_old_uses(store, 90, most=11)
    assert len(await tools(store)) == 11
    await delete_old_uses(store, 90, most=10)
    assert await tools(store) == {f"of{age}" for age in range(9)}
