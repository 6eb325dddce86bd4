"""After the answer, the ranking learns the executed calls of a turn. A failing store loses only these calls."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Op
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, scripted

from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.composition import open_graph
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.ranking.learning import ConfirmedUse
from packetgate.ranking.store import USES_NAMESPACE, store_use
from packetgate.state.base import now
from packetgate.state.sections import Header

READ, WRITE, WEATHER = "notebook.read_note", "notebook.write_note", "notebook.check_weather"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[BaseStore]:
    """A store in a separate SQLite file."""
    async with open_store(Settings(home=tmp_path)) as opened:
        yield opened


class Hanging(InMemoryStore):
    """A store that never answers."""

    async def abatch(self, ops: Iterable[Op]) -> Any:
        await asyncio.Event().wait()


async def test_a_failing_store_is_logged_once_and_the_turn_continues(
    store: BaseStore, notebook: Notebook, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(store, AsyncSqliteStore)
    await store.conn.close()
    with caplog.at_level(logging.ERROR):
        async with session(scripted(call(READ, name="a")), notebook, store=store) as talk:
            packet = await talk.say("Read a")
    assert "apples" in packet.response.candidate
    assert [packet.header.packet_id in one.getMessage() for one in caplog.records] == [True]


async def test_a_hanging_store_is_abandoned_after_a_timeout(
    notebook: Notebook, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("packetgate.graph.records.TIMEOUT_S", 0.01)
    async with session(reflex_deciders(), notebook, store=Hanging()) as talk:
        packet = await talk.say("Read note name=a")
    assert packet.response.candidate
    assert "TimeoutError" in caplog.text


@pytest.mark.parametrize(("days", "left"), [(90, {"new"}), (365, {"old", "new"}), (0, {"old", "new"})])
async def test_opening_a_graph_prunes_old_lessons(tmp_path: Path, days: int, left: set[str]) -> None:
    settings = Settings(home=tmp_path, root=tmp_path, usage_days=days)
    async with open_store(settings) as store:
        for tool, at in (("old", now() - timedelta(days=100)), ("new", now())):
            use = ConfirmedUse(tool=tool, asked="Go on", context_type="general", session_id="s", at=at)
            await store_use(store, Header(), tool, use)
    async with open_graph(settings) as opened:
        assert opened.graph.store is not None
        items = await opened.graph.store.asearch((), limit=100)
    assert {item.value.get("tool") for item in items} == left


async def test_executed_calls_are_learned_and_failed_or_denied_calls_are_not(notebook: Notebook) -> None:
    store = InMemoryStore()
    deciders = scripted(call(READ, name="a"), call(WEATHER, city="Bern"), call(WRITE, name="a", text="x"))
    async with session(deciders, notebook, store=store, allow_write_tools=True, max_reinjections=1) as talk:
        await talk.say("Cheer me up with a")
        await talk.say("Is it nice out in Bern")
        await talk.ask("Jot it down")
        await talk.reply("no")
    assert [item.value["tool"] for item in await store.asearch(USES_NAMESPACE)] == [READ]
