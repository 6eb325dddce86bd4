"""Records in every store that LangGraph has for one machine."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from support.usage import turn, used

from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.state.base import new_id
from packetgate.tools.usage.store import USAGE_NAMESPACE, delete_old_items, read_usage, store_record

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
        for item in await opened.asearch(USAGE_NAMESPACE, limit=100_000):
            await opened.adelete(item.namespace, item.key)


async def ids(store: BaseStore, session: str | None = None) -> list[str]:
    return [record.packet_id for record in (await read_usage(store, session)).records]


async def test_a_record_is_stored_once(store: BaseStore) -> None:
    record = turn("p1", used("ai.read", arguments=("path",), review_confidence=0.9))
    await store_record(store, record)
    usage = await read_usage(store, "s")
    assert usage.records == (record,)
    assert usage.unreadable == 0
    await store_record(store, record.changed(asked="again"))
    assert [one.asked for one in (await read_usage(store)).records] == ["again"]


async def test_sessions_are_separate(store: BaseStore) -> None:
    for number, session in enumerate(SESSIONS):
        await store_record(store, turn(f"p{number}", session=session, days_ago=-number))
    assert [await ids(store, session) for session in SESSIONS] == [[f"p{number}"] for number in range(len(SESSIONS))]
    assert await ids(store) == [f"p{number}" for number in range(len(SESSIONS))]
    assert await ids(store, "another") == []


async def test_other_items_are_not_pruned(store: BaseStore) -> None:
    other = ("packetgate", "usages")
    await store.aput(other, "k", {"at": "", "day": 0})
    await store_record(store, turn("p1"))
    await delete_old_items(store, 1, most=0)
    assert await ids(store) == []
    assert await store.aget(other, "k") is not None
    await store.adelete(other, "k")


async def test_invalid_records_are_counted(store: BaseStore) -> None:
    await store_record(store, turn("p1"))
    value = {**turn("p2").model_dump(mode="json"), "day": 99_999}
    await store.aput((*USAGE_NAMESPACE, "s"), "p3", {**value, "calls": "of another kind"})
    usage = await read_usage(store)
    assert [record.packet_id for record in usage.records] == ["p1"]
    assert usage.unreadable == 1


async def test_old_records_are_pruned(store: BaseStore) -> None:
    for age in (0, 89, 92, 400):
        await store_record(store, turn(f"of{age}", days_ago=age))
    await delete_old_items(store, 90)
    assert await ids(store) == ["of89", "of0"]
    await delete_old_items(store, 7)
    assert await ids(store) == ["of0"]


async def test_the_oldest_records_are_pruned(store: BaseStore) -> None:
    for age in range(11):
        await store_record(store, turn(f"of{age}", session=f"s{age % 3}", days_ago=age))
    await delete_old_items(store, 90, most=11)
    assert len(await ids(store)) == 11
    await delete_old_items(store, 90, most=10)
    assert await ids(store) == [f"of{age}" for age in range(8, -1, -1)]


async def test_a_store_that_has_grown_large_is_pruned(store: BaseStore) -> None:
    await asyncio.gather(*(store_record(store, turn(new_id(), days_ago=number)) for number in range(2_500)))
    assert len(await ids(store)) == 2_500
    await delete_old_items(store, 2_200, most=500)
    assert len(await ids(store)) == 450
