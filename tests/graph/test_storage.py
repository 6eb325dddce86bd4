"""Storage of sessions: restored, private to its owner, shared by processes, with errors if unusable."""

import asyncio
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from support.command_line import CommandLine
from support.killed_turn import forking
from support.usage import record_many

from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.ranking.store import USES_NAMESPACE
from packetgate.state.errors import ConfigError

PAGE = 4096
"""Size of SQLite's pages in bytes."""


def fails(cli: CommandLine, **variables: str) -> str:
    """Return the one-line error of an `ask`."""
    outcome = cli.run("ask", "Hello", **variables)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("packetgate: ")
    assert outcome.err.count("\n") == 1
    return outcome.err


@pytest.mark.slow
@pytest.mark.parametrize("strict", ["true", "false"])
def test_sessions_restore_without_warnings(cli: CommandLine, strict: str) -> None:
    """LangGraph reads the variable at import, so a new process restores the session."""
    asked = cli.run("ask", "Read plan.txt", "--session", "s")
    waiting = cli.run("ask", 'Write "x" to new.txt', "--session", "s", "--allow-writes")
    denied = cli.start("answer", "no", "--session", "s", LANGGRAPH_STRICT_MSGPACK=strict)
    hello = cli.start("ask", "Hello", "--session", "s", "--json", LANGGRAPH_STRICT_MSGPACK=strict)
    ends = [(outcome.status, outcome.err) for outcome in (asked, waiting, denied, hello)]
    assert ends == [(0, ""), (3, ""), (0, ""), (0, "")]
    assert "The gate opens at seven." in hello.out  # stored in the ledger


@pytest.mark.parametrize("content", [b"this is no database\n" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_corrupt_database_is_named_and_kept(cli: CommandLine, content: bytes) -> None:
    cli.home.mkdir()
    database = cli.home / "packetgate.db"
    database.write_bytes(content)
    message = fails(cli)
    assert f"{database}: damaged, or not a file of Packetgate" in message
    assert "move packetgate.db* away" in message
    assert database.read_bytes() == content


def test_a_home_that_is_a_file_is_named(cli: CommandLine) -> None:
    cli.home.write_text("in the way\n")
    assert f"{cli.home / 'packetgate.db'}: cannot be opened" in fails(cli)


def root_page(database: Path, table: str) -> int:
    with closing(sqlite3.connect(database)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()
    return int(page)


def test_zeroed_pages_are_named_and_kept(cli: CommandLine) -> None:
    cli.run("ask", "Read plan.txt", "--session", "s")
    database = cli.home / "packetgate.db"
    sound = database.read_bytes()
    for table, commands in {
        "journal": [("audit",), ("doctor",), ("ask", "Read plan.txt", "--session", "s")],
        "checkpoints": [("ask", "Hello", "--session", "s"), ("doctor",)],
    }.items():
        page = root_page(database, table)
        damaged = sound[: (page - 1) * PAGE] + bytes(PAGE) + sound[page * PAGE :]
        database.write_bytes(damaged)
        for command in commands:
            outcome = cli.run(*command)
            assert outcome.status == (1 if command == ("doctor",) else 2), command
            message = " ".join((outcome.out + outcome.err).split())
            assert "damaged, or not a file of Packetgate" in message, command
            assert "Traceback" not in message
            assert "[internal]" not in message
            assert database.read_bytes()[(page - 1) * PAGE : page * PAGE] == bytes(PAGE), command
        database.write_bytes(sound)


def test_a_damaged_session_is_named_and_leaves_others_usable(cli: CommandLine) -> None:
    cli.run("ask", "Hello", "--session", "s")
    sound = (cli.home / "packetgate.db").read_bytes()
    for damage in ("checkpoint = x'00'", "checkpoint = substr(checkpoint, 1, 99)", "metadata = 'no'", "type = 'no'"):
        (cli.home / "packetgate.db").write_bytes(sound)
        with closing(sqlite3.connect(cli.home / "packetgate.db")) as connection, connection:
            connection.execute(f"UPDATE checkpoints SET {damage}")
        command = ("trace",) if damage.startswith("checkpoint") else ("ask", "Hello")
        outcome = cli.run(*command, "--session", "s")
        assert outcome.status == 2, damage
        assert "the stored state of session 's' is damaged" in outcome.err
        assert "[packet-unreadable]" in outcome.err
    assert cli.run("ask", "Hello", "--session", "other").status == 0


def test_a_damaged_undo_file_is_named_and_kept(cli: CommandLine) -> None:
    cli.home.mkdir()
    (cli.home / "undo.db").write_bytes(content := b"this is no database\n" * 100)
    listed, checked = cli.run("undo", "--list"), cli.run("doctor")
    assert (listed.status, checked.status) == (2, 1)
    for message in (listed.err, " ".join(checked.out.split())):
        assert "undo.db: damaged, or not a file of Packetgate" in message
        assert "move undo.db* away" in message
    assert (cli.home / "undo.db").read_bytes() == content


def test_damaged_vectors_are_computed_again(cli: CommandLine) -> None:
    cli.run("ask", "Read plan.txt")
    with closing(sqlite3.connect(cli.home / "vectors.db")) as connection, connection:
        assert connection.execute("UPDATE vectors SET data = substr(data, 1, 10)").rowcount
    outcome = cli.run("ask", "Read plan.txt")
    assert outcome.status == 0
    assert "a stored vector is damaged" in outcome.err


async def test_a_full_disk_is_named(tmp_path: Path) -> None:
    async with open_checkpointer(Settings(home=tmp_path)) as saver, open_store(Settings(home=tmp_path)) as store:
        for connection in (saver.conn, store.conn):  # type: ignore[attr-defined]
            await connection.execute("PRAGMA max_page_count = 1")  # at least the current page count
        config = {"configurable": {"thread_id": "s", "checkpoint_ns": ""}}
        checkpoint = {**empty_checkpoint(), "channel_values": {"x": "x" * 100_000}}
        with pytest.raises(ConfigError, match=r"packetgate\.db: cannot be written: .*; free space on the disk"):
            await saver.aput(config, checkpoint, {}, {})  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"packetgate\.db: cannot be written: .*; free space on the disk"):
            await store.aput(("names",), "x", {"x": "x" * 100_000})


PROCESSES, TURNS = 4, 25


@pytest.mark.slow
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
    turns = [row.entry.session_id for row in await open_journal(settings).event_entries("turn_opened")]
    assert (len(turns), turns.count("session 1")) == (PROCESSES * TURNS, TURNS)
    async with open_store(settings) as store:
        assert len(await store.asearch(USES_NAMESPACE, limit=1_000)) == PROCESSES * TURNS


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def kept(home: Path) -> set[int]:
    """Return the modes of all files while the database is open."""
    settings = Settings(home=home)
    async with open_checkpointer(settings), open_store(settings):
        files = await asyncio.to_thread(lambda: [file for file in home.iterdir() if "packetgate.db" in file.name])
        assert {file.name for file in files} >= {"packetgate.db", "packetgate.db-wal"}
        return {mode(file) for file in files}


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Set the usual umask, under which new files are readable by all."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_new_files_are_private(tmp_path: Path):
    assert asyncio.run(kept(tmp_path / "home")) == {0o600}
    assert mode(tmp_path / "home") == 0o700


def test_existing_files_are_closed_to_others(tmp_path: Path):
    home = tmp_path / "home"
    asyncio.run(kept(home))
    home.chmod(0o755)
    for file in (home / "packetgate.db", home / "packetgate.db-wal"):
        file.touch()
        file.chmod(0o644)
    assert asyncio.run(kept(home)) == {0o600}
    assert mode(home) == 0o700


def test_a_folder_with_other_files_keeps_its_mode(tmp_path: Path):
    (tmp_path / "mine.txt").touch()
    tmp_path.chmod(0o755)
    assert asyncio.run(kept(tmp_path)) == {0o600}
    assert mode(tmp_path) == 0o755
