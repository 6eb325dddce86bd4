"""PostgreSQL: pools, errors, and stored results that every machine can read."""

import asyncio
from pathlib import Path

import pytest
from psycopg import AsyncConnection
from support.command_line import CommandLine
from support.pictures import png

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.turn import Finished, Say, run_turn
from packetgate.gate.journal import Entry
from packetgate.graph.journal import open_journal
from packetgate.graph.leases import open_leases
from packetgate.graph.postgres import MAX_CONNECTIONS
from packetgate.graph.settings import Settings
from packetgate.graph.shared_results import result_store
from packetgate.graph.storage import open_checkpointer, open_store
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError
from packetgate.tools.attached.parts import message_part
from packetgate.tools.text.result_store import ResultStore, session_results


def test_a_conversation_and_a_question_survive_the_process(cli: CommandLine, postgres: str) -> None:
    def run(*args: str) -> tuple[int, str]:
        outcome = cli.run(*args, "--session", "s", PACKETGATE_DATABASE_URL=postgres)
        assert outcome.err == ""
        return outcome.status, outcome.out

    assert run("ask", "Read plan.txt")[0] == 0
    assert run("ask", 'Write "seven" to new.txt', "--allow-writes")[0] == 3
    assert not (cli.folder / "new.txt").exists()
    assert run("answer", "yes")[0] == 0
    assert (cli.folder / "new.txt").read_text() == "seven"
    status, packet = run("ask", "Hello", "--json")
    assert status == 0
    assert "The gate opens at seven." in packet  # stored in the ledger
    assert not (cli.home / "packetgate.db").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "postgresql://me:hunter2@127.0.0.1:9/none",
            "PACKETGATE_DATABASE_URL: postgresql://me@127.0.0.1:9/none cannot be",
        ),
        ("mysql://me:hunter2@127.0.0.1/none", "PACKETGATE_DATABASE_URL is not a PostgreSQL URL: use postgresql://"),
    ],
)
async def test_an_unusable_database_is_one_line_without_the_password(url: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        async with open_checkpointer(Settings(database_url=url)):
            pass
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


async def test_a_process_uses_few_connections_and_replaces_broken_ones(postgres: str) -> None:
    settings = Settings(database_url=postgres)
    max_open = MAX_CONNECTIONS + 3  # two lease connections and one of the journal
    journal = open_journal(settings)
    async with (
        open_checkpointer(settings) as checkpointer,
        open_store(settings) as store,
        open_leases(settings) as leases,
        open_leases(settings) as others,
        await AsyncConnection.connect(postgres, autocommit=True) as watching,
    ):

        async def connections(of: str = "pid") -> int:
            query = f"SELECT count({of}) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL"
            found = await (await watching.execute(query)).fetchone()
            return int(found[0]) if found else 0

        async def one(number: int) -> None:
            await journal.record(Entry("x", f"s{number}"))
            await store.aput(("t",), f"{number}", {"n": number})
            assert await checkpointer.aget_tuple({"configurable": {"thread_id": f"s{number}"}}) is None
            seen.append(await connections())

        async with leases.hold("a"):
            seen: list[int] = []
            await asyncio.gather(*(one(number) for number in range(60)))
            assert max(seen) <= max_open
            assert await connections("pg_terminate_backend(pid)") > 2
            while await connections():  # noqa: ASYNC110  the database sends no event
                await asyncio.sleep(0.01)
            await asyncio.gather(*(one(number) for number in range(60, 70)))
            assert await leases.take("b")  # the new connection also locks `a` again
            assert await others.is_taken("a")
            assert await others.is_taken("b")
        assert not await others.is_taken("a")


async def test_a_turn_locks_its_session_again_after_its_connection_breaks(postgres: str) -> None:
    """The turn reacquires the lock even if it does not use the database in the meantime."""
    settings = Settings(database_url=postgres)
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'packetgate-leases'"
    async with open_leases(settings) as ours, ours.hold("a"):
        async with await AsyncConnection.connect(postgres, autocommit=True) as other:
            await other.execute(kill)
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            for _ in range(200):
                await asyncio.sleep(0.1)
                if await (await other.execute(held)).fetchone() == (1,):
                    break
        async with open_leases(settings) as others:
            assert await others.is_taken("a")


def machine(tmp_path: Path, name: str, url: str) -> ResultStore:
    return result_store(Settings(home=tmp_path / name, database_url=url))


async def test_a_handle_can_be_read_on_another_machine_in_its_session_only(tmp_path: Path, postgres: str) -> None:
    here, there = machine(tmp_path, "here", postgres), machine(tmp_path, "there", postgres)
    with session_results("one"):
        assert there.read("kept:0123456789abcdef") is None
        text, data = here.keep("a long text"), here.keep(b"\x89PNG\xff")
        assert there.read(text) == "a long text"
        file = there.file(data, "one")
        assert file is not None
        assert file.is_relative_to(tmp_path / "there")
        assert file.read_bytes() == b"\x89PNG\xff"
    with session_results("two"):
        assert there.read(text) is None


async def test_the_results_of_all_sessions_together_are_limited(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("packetgate.graph.shared_results.MAX_SHARED_BYTES", 100)
    here, handles = machine(tmp_path, "here", postgres), {}
    for session in ("oldest", "old", "new"):
        with session_results(session):
            handles[session] = await asyncio.to_thread(here.keep, 48 * "x")
    left = set()
    for session, handle in handles.items():
        with session_results(session):
            if await asyncio.to_thread(machine(tmp_path, "there", postgres).read, handle):
                left.add(session)
    assert left == {"old", "new"}


async def test_a_picture_attached_on_one_machine_is_available_on_another(tmp_path: Path, postgres: str) -> None:
    settings = Settings(root=tmp_path, home=tmp_path / "here", database_url=postgres)
    async with open_sessions(settings) as sessions:
        turn = Say("Hello", files=(message_part("dot.png", png()),))
        events = [event async for event in run_turn(sessions, turn, "one", RoutingContext())]
    assert isinstance(events[-1], Finished)
    (attached,) = events[-1].packet.content.attachments
    assert attached.handle
    file = await asyncio.to_thread(machine(tmp_path, "there", postgres).file, attached.handle, "one")
    assert file is not None
    assert file.read_bytes() == png()
