"""The journal in its database: each key once, a single order, also in a database of an earlier version."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from support.old_session import JOURNAL_ROWS, READ, restore_old_session

from packetgate.gate.journal import Entry, Journal, MemoryJournal
from packetgate.graph.journal import (
    DatabaseJournal,
    journal_at,
    open_journal,
)
from packetgate.graph.settings import Settings


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return Settings(home=tmp_path, database_url=url)


async def count(journal: DatabaseJournal) -> int:
    return len([row async for row in journal.rows()])


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
    assert await count(open_journal(settings)) >= 3


async def test_concurrent_writers_share_one_journal(settings: Settings) -> None:
    """Several connections with several writers each: all rows are stored, with one row per key."""
    journals = [open_journal(settings) for _ in range(3)]
    before = await count(journals[0])
    work = [journal.record(Entry("x", "many", detail={"n": n})) for journal in journals for n in range(20)]
    claims = [journal.claim("contended") for journal in journals * 5]
    done = await asyncio.gather(*work, *claims)
    assert sum(done[len(work) :]) == 1
    assert await count(journals[0]) == before + len(work) + 1
    seqs = [row.seq async for row in journals[1].rows("many")]
    assert len(seqs) == len(work)
    assert seqs == sorted(set(seqs))


async def test_forgetting_a_session_erases_details_and_keeps_keys(settings: Settings) -> None:
    journal = open_journal(settings)
    await journal.record(Entry("x", "gone", detail={"secret": "avocado"}, key="run"))
    await journal.record(Entry("x", "here", detail={"kept": 1}))
    await journal.forget("gone")
    await journal.forget("unknown")
    assert [(row.key, row.detail) async for row in journal.rows("gone")] == [("run", None)]
    assert [row async for row in journal.rows("unknown")] == []
    assert [row.recorded_entry.entry.detail async for row in journal.rows("here")] == [{"kept": 1}]
    assert not await journal.record(Entry("x", "gone", key="run"))
    assert await journal.record(Entry("x", "gone"))


HASHED_TABLES = """
CREATE TABLE journal (
    seq BIGINT PRIMARY KEY, at TEXT NOT NULL, session_id TEXT NOT NULL, packet_id TEXT NOT NULL, call_id TEXT NOT NULL,
    event TEXT NOT NULL, key TEXT UNIQUE, digest TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL, detail TEXT
);
CREATE INDEX journal_calls ON journal (packet_id, call_id);
CREATE INDEX journal_events ON journal (event, seq);
CREATE INDEX journal_sessions ON journal (session_id, seq);
CREATE TABLE journal_head (one INTEGER PRIMARY KEY CHECK (one = 1), seq BIGINT NOT NULL, hash TEXT);
CREATE FUNCTION journal_refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'append-only'; END $$;
CREATE TRIGGER journal_kept BEFORE DELETE ON journal FOR EACH ROW EXECUTE FUNCTION journal_refuses();
CREATE TRIGGER journal_whole BEFORE TRUNCATE ON journal EXECUTE FUNCTION journal_refuses();
CREATE TRIGGER journal_unchanged BEFORE UPDATE ON journal FOR EACH ROW WHEN (NEW.detail IS NOT NULL)
    EXECUTE FUNCTION journal_refuses();
"""


async def upgraded(journals: list[DatabaseJournal], rows: int) -> None:
    """Open an earlier version's journal in several connections concurrently; rows, keys and order are preserved."""
    assert set(await asyncio.gather(*map(count, journals))) == {rows}
    assert await journals[0].record(Entry("new", "old", key="new"))
    assert not await journals[1].record(Entry("new", "old", key="new"))
    assert [(row.seq, row.event) async for row in journals[2].rows("old")][-1] == (rows + 1, "new")
    await journals[0].forget("old")
    assert {row.detail async for row in journals[1].rows("old")} == {None}


async def test_a_sqlite_journal_of_an_earlier_version_is_upgraded(tmp_path: Path) -> None:
    path = restore_old_session(tmp_path)
    (ended,) = [row for row in await journal_at(path).event_entries("call_ended") if row.entry.packet_id == READ]
    assert (ended.seq, ended.entry.detail["status"], "salt" in ended.entry.detail) == (5, "executed", False)
    fresh = restore_old_session(tmp_path / "fresh")
    await upgraded([journal_at(fresh) for _ in range(3)], JOURNAL_ROWS)


async def test_a_postgres_journal_of_an_earlier_version_is_upgraded(postgres: str) -> None:
    import psycopg

    path = f"{postgres}{'&' if '?' in postgres else '?'}options=-csearch_path%3Dearlier"
    with psycopg.connect(path, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA earlier")
        connection.execute(HASHED_TABLES, prepare=False)
        for number in (1, 2, 3):
            names = (number, "2026-11-27T00:00:00+00:00", "old", "p", "c", "x", f"k{number}", "", "", "", "{}")
            connection.execute("INSERT INTO journal VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", names)
    await upgraded([journal_at(path) for _ in range(3)], 3)
    assert not await journal_at(path).record(Entry("x", "old", key="k2"))


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


async def test_a_forked_process_writes_to_the_same_journal(tmp_path: Path) -> None:
    path = tmp_path / "packetgate.db"
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", FORKED, str(path)], timeout=60)
    assert done.returncode == 0
    assert await count(journal_at(path)) == 3


def remove(folder: Path) -> None:
    for file in folder.glob("packetgate.db*"):
        file.unlink()


async def test_a_deleted_file_is_created_again(tmp_path: Path) -> None:
    journal = journal_at(tmp_path / "packetgate.db")
    assert await journal.claim("one")
    await asyncio.to_thread(remove, tmp_path)
    assert await journal.claim("two")
    assert await count(journal_at(tmp_path / "packetgate.db")) == 1
