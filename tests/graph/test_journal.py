"""The journal in its database: each key once, one order, and changes are detected."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from packetgate.gate.journal import Entry, Journal, MemoryJournal
from packetgate.graph.journal import (
    FORGOTTEN,
    TRIGGERS_REPLACED,
    DatabaseJournal,
    JournalChain,
    journal_at,
    open_journal,
)
from packetgate.graph.settings import Settings


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return Settings(home=tmp_path, database_url=url)


async def verified(journal: DatabaseJournal) -> JournalChain:
    chain = JournalChain()
    async for row in journal.rows():
        assert chain.check_row(row) is None
    assert chain.check_end(await journal.head()) is None
    return chain


async def written_to(journal: Journal) -> None:
    entries = [
        Entry("call_started", "s", "p", f"c{number}", {"tool": "a.b", "odd": "\x00\ud800é"}) for number in (1, 2)
    ]
    assert await journal.record()
    assert await journal.record(*entries)
    assert [await journal.claim("k") for _ in range(3)] == [True, False, False]
    assert not await journal.record(Entry("lost", "s", "p", "c1"), Entry("lost", key="k"))
    (found,) = await journal.call_entries("p", "c1")
    assert found.entry == entries[0]
    assert await journal.call_entries("q", "c1") == ()


async def test_the_memory_journal_accepts_a_key_once() -> None:
    await written_to(MemoryJournal())


async def test_the_database_journal_accepts_a_key_once(settings: Settings) -> None:
    await written_to(open_journal(settings))
    assert (await verified(open_journal(settings))).head.seq >= 3


async def test_concurrent_writers_form_one_chain(settings: Settings) -> None:
    """Several connections, each with several writers: one chain, and one row per key."""
    journals = [open_journal(settings) for _ in range(3)]
    before = (await journals[0].head()).seq
    work = [journal.record(Entry("x", "many", detail={"n": n})) for journal in journals for n in range(20)]
    claims = [journal.claim("contended") for journal in journals * 5]
    done = await asyncio.gather(*work, *claims)
    assert sum(done[len(work) :]) == 1
    assert (await verified(journals[0])).head.seq == before + len(work) + 1
    assert len([row async for row in journals[1].rows("many")]) == len(work)


async def test_forgetting_a_session_keeps_the_chain_valid(settings: Settings) -> None:
    journal = open_journal(settings)
    await journal.record(Entry("x", "gone", detail={"secret": "avocado"}), Entry("x", "here", detail={"kept": 1}))
    await journal.forget("gone")
    await journal.forget("gone")
    await journal.forget("unknown")
    rows = [(row.event, row.detail is None) async for row in journal.rows("gone")]
    assert rows == [("x", True), (FORGOTTEN, False)]
    assert [row async for row in journal.rows("unknown")] == []
    assert [row.recorded_entry.entry.detail async for row in journal.rows("here")] == [{"kept": 1}]
    assert (await verified(journal)).erased == 1
    await journal.record(Entry("x", "gone"))
    await verified(journal)


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM journal", "UPDATE journal SET event = 'y'", "UPDATE journal SET detail = '{}'"],
)
async def test_rows_cannot_be_changed(settings: Settings, change: str) -> None:
    journal = open_journal(settings)
    await journal.record(Entry("x", "s"))
    if settings.database_url:
        import psycopg

        with psycopg.connect(settings.database_url) as connection, pytest.raises(psycopg.Error, match="append-only"):
            connection.execute(change)
    else:
        with (
            closing(sqlite3.connect(settings.database)) as connection,
            pytest.raises(sqlite3.Error, match="append-only"),
        ):
            connection.execute(change)
    await verified(journal)


TRIGGER_CHANGES = {
    "sqlite": ["DROP TRIGGER journal_kept", "DROP TRIGGER journal_unchanged"],
    "postgres": [
        "DROP TRIGGER journal_kept ON journal",
        "ALTER TABLE journal DISABLE TRIGGER ALL",
        "CREATE OR REPLACE FUNCTION journal_refuses() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
    ],
}


@pytest.mark.parametrize("settings", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("number", range(3))
async def test_missing_and_changed_triggers_are_recorded_and_created_again(settings: Settings, number: int) -> None:
    journal = open_journal(settings)
    await journal.record(Entry("x", "s"))
    end = (await verified(open_journal(settings))).head.seq
    if settings.database_url:
        import psycopg

        with psycopg.connect(settings.database_url) as connection:
            connection.execute(TRIGGER_CHANGES["postgres"][number])
    else:
        with closing(sqlite3.connect(settings.database)) as connection, connection:
            for change in TRIGGER_CHANGES["sqlite"][: number or 2]:
                connection.execute(change)
            if number == 2:
                connection.execute("CREATE TRIGGER journal_kept BEFORE DELETE ON journal BEGIN SELECT 1; END")
    await asyncio.gather(*(open_journal(settings).record(Entry("x", "s")) for _ in range(4)))
    chain = await verified(open_journal(settings))
    assert chain.replaced_triggers is not None
    events = [row.event async for row in journal.rows() if row.seq >= end]
    assert events == ["x", TRIGGERS_REPLACED, *["x"] * 4]
    await test_rows_cannot_be_changed(settings, "DELETE FROM journal")


async def test_triggers_with_other_white_space_are_valid(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    await open_journal(settings).record(Entry("x", "s"))
    with closing(sqlite3.connect(settings.database)) as connection, connection:
        (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'journal_kept'").fetchone()
        connection.execute("DROP TRIGGER journal_kept")
        connection.execute(sql.replace(" BEGIN", "\nBEGIN"))
    assert (await verified(open_journal(settings))).replaced_triggers is None


FORGERIES = {
    "UPDATE journal SET event = 'call_denied' WHERE seq = 2": "row 2 has been changed",
    "UPDATE journal SET detail = '{}' WHERE seq = 2": "the detail of row 2 has been changed",
    "UPDATE journal SET detail = NULL WHERE seq = 2": "the detail of row 2 was removed",
    "UPDATE journal SET detail = NULL WHERE seq > 1": "the detail of row 2 was removed",
    "DELETE FROM journal WHERE seq = 2": "row 2 is missing: row 3 follows",
    "DELETE FROM journal WHERE seq = 1": "row 1 is missing: row 2 follows",
    "UPDATE journal SET previous = 'x' WHERE seq = 2": "row 2 does not follow from row 1",
    "DELETE FROM journal WHERE seq > 2": "the last row is 2, but the stored head is row 4",
    "DELETE FROM journal": "the last row is 0, but the stored head is row 4",
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_changes_that_bypass_the_triggers_are_detected(tmp_path: Path, forgery: str) -> None:
    journal = open_journal(Settings(home=tmp_path))
    await journal.record(*(Entry("x", "s", detail={"n": n}) for n in range(4)))
    with closing(sqlite3.connect(tmp_path / "packetgate.db")) as connection, connection:
        connection.executescript("DROP TRIGGER journal_kept; DROP TRIGGER journal_unchanged;")
        connection.execute(forgery)
    chain = JournalChain()
    problems = [chain.check_row(row) async for row in journal.rows()]
    found = next((one for one in problems if one), None) or chain.check_end(await journal.head())
    assert found is not None
    assert found.startswith(FORGERIES[forgery])


async def test_a_detail_erased_after_its_session_was_forgotten_is_detected(tmp_path: Path) -> None:
    journal = open_journal(Settings(home=tmp_path))
    await journal.record(Entry("x", "s"))
    await journal.forget("s")
    await journal.record(Entry("x", "s"))
    with closing(sqlite3.connect(tmp_path / "packetgate.db")) as connection, connection:
        connection.execute("UPDATE journal SET detail = NULL WHERE seq = 3")
    chain = JournalChain()
    assert [chain.check_row(row) async for row in journal.rows()] == [None, None, None]
    assert (chain.check_end(await journal.head()) or "").startswith("the detail of row 3 was removed")


async def test_deleted_last_rows_are_detected_after_new_rows(tmp_path: Path) -> None:
    journal = open_journal(Settings(home=tmp_path))
    await journal.record(*(Entry("x", "s") for _ in range(3)))
    with closing(sqlite3.connect(tmp_path / "packetgate.db")) as connection, connection:
        connection.executescript("DROP TRIGGER journal_kept; DELETE FROM journal WHERE seq = 3;")
    await open_journal(Settings(home=tmp_path)).record(Entry("x", "s"))
    chain = JournalChain()
    problems = [chain.check_row(row) async for row in journal.rows()]
    assert problems[:3] == [None, None, "row 3 is missing: row 4 follows"]


FORKED = """
import asyncio, os, sys
from packetgate.graph.journal import journal_at
from packetgate.gate.journal import Entry

journal = journal_at(sys.argv[1])

def write(key):
    return asyncio.run(journal.record(Entry("x", key=key)))

assert write("before")
if child := os.fork():
    ended = os.waitpid(child, 0)[1]
    sys.exit(ended or not write("parent") or write("child"))
os._exit(0 if write("child") and not write("before") else 1)
"""


async def test_a_forked_process_writes_to_the_same_chain(tmp_path: Path) -> None:
    path = tmp_path / "packetgate.db"
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", FORKED, str(path)], timeout=60)
    assert done.returncode == 0
    journal = journal_at(path)
    assert (await verified(journal)).head.seq == 3


def remove(folder: Path) -> None:
    for file in folder.glob("packetgate.db*"):
        file.unlink()


async def test_a_deleted_file_is_created_again(tmp_path: Path) -> None:
    journal = journal_at(tmp_path / "packetgate.db")
    assert await journal.claim("one")
    await asyncio.to_thread(remove, tmp_path)
    assert await journal.claim("two")
    assert (await verified(journal_at(tmp_path / "packetgate.db"))).head.seq == 1
