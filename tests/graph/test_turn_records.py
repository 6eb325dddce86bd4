"""Each turn is recorded after its answer, and executed calls are learned; a failing store loses only the record."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Op
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted
from support.usage import recording, turn

from packetgate.deciders.choosing import reflex_deciders
from packetgate.graph.composition import open_graph
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_store
from packetgate.state.transitions import ToolExecutionStatus as Status
from packetgate.tools.usage.store import USES_NAMESPACE, read_usage, store_record

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


def all_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_a_turn_is_recorded(store: BaseStore, notebook: Notebook) -> None:
    both = calls(wanted(READ, name="a"), wanted(WEATHER, city="Bern"))
    async with recording(scripted(call("notebook.sing"), both), store, notebook) as talk:
        packet = await talk.say("Read a, and check the weather")
    (record,) = (await read_usage(store, "session")).records
    assert (record.packet_id, record.asked) == (packet.header.packet_id, "Read a, and check the weather")
    assert [shown.tool for shown in record.palette] == [entry.tool_name for entry in packet.context.palette]
    assert record.missed == ("notebook.sing",)
    read, weather = record.calls
    assert (read.tool, read.arguments, read.status) == (READ, ("name",), Status.EXECUTED)
    assert (read.selection_confidence, read.review_confidence, read.approval) == (0.8, 0.9, None)
    assert (weather.status, weather.error) == (Status.FAILED, "tool_error")
    assert weather.execution_ms


async def test_records_contain_no_arguments_and_no_results(store: BaseStore, tmp_path: Path) -> None:
    both = calls(wanted(READ, name="aardvark"), wanted(WEATHER, city="zanzibar"))
    async with recording(scripted(both), store, Notebook(aardvark="quinquereme")) as talk:
        packet = await talk.say("Read it, and check the weather")
    assert "quinquereme" in packet.response.candidate
    written = all_bytes(tmp_path)
    assert b"check the weather" in written
    assert [word for word in (b"aardvark", b"zanzibar", b"quinquereme", b"burned down") if word in written] == []


async def test_a_failing_store_is_logged_once_and_the_turn_continues(
    store: BaseStore, notebook: Notebook, caplog: pytest.LogCaptureFixture
) -> None:
    assert isinstance(store, AsyncSqliteStore)
    await store.conn.close()
    with caplog.at_level(logging.ERROR):
        async with recording(scripted(call(READ, name="a")), store, notebook) as talk:
            packet = await talk.say("Read a")
    assert "apples" in packet.response.candidate
    assert [packet.header.packet_id in one.getMessage() for one in caplog.records] == [True]


async def test_a_hanging_store_is_abandoned_after_a_timeout(
    notebook: Notebook, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("packetgate.graph.records.TIMEOUT_S", 0.01)
    async with recording(reflex_deciders(), Hanging(), notebook) as talk:
        packet = await talk.say("Hello")
    assert packet.response.candidate
    assert "TimeoutError" in caplog.text


@pytest.mark.parametrize(("days", "left"), [(90, ["new"]), (365, ["old", "new"]), (0, ["old", "new"])])
async def test_opening_a_graph_prunes_old_records(tmp_path: Path, days: int, left: list[str]) -> None:
    settings = Settings(home=tmp_path, root=tmp_path, usage_days=days)
    async with open_store(settings) as store:
        await store_record(store, turn("old", days_ago=100))
        await store_record(store, turn("new"))
    async with open_graph(settings) as opened:
        assert opened.graph.store is not None
        assert [record.packet_id for record in (await read_usage(opened.graph.store)).records] == left


async def test_executed_calls_are_learned_and_failed_or_denied_calls_are_not(notebook: Notebook) -> None:
    store = InMemoryStore()
    deciders = scripted(call(READ, name="a"), call(WEATHER, city="Bern"), call(WRITE, name="a", text="x"))
    async with recording(deciders, store, notebook, allow_write_tools=True, max_reinjections=1) as talk:
        await talk.say("Cheer me up with a")
        await talk.say("Is it nice out in Bern")
        await talk.ask("Jot it down")
        await talk.reply("no")
    assert [item.value["tool"] for item in await store.asearch(USES_NAMESPACE)] == [READ]
