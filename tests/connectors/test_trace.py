"""`packetgate trace` shows stored packets by id prefix, or the last packet."""

import asyncio
import json

import pytest
from support.command_line import CommandLine

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.trace import find_packet
from packetgate.graph.settings import Settings

REQUEST = "Read plan.txt"


def ask(cli: CommandLine, request: str = REQUEST, session: str = "work") -> str:
    """Ask, and return the packet as `ask --json` prints it."""
    return cli.run("ask", request, "--session", session, "--json").out


def test_id_and_last_show_the_same_trace(cli: CommandLine) -> None:
    written = ask(cli)
    packet_id = json.loads(written)["header"]["packet_id"]
    first = cli.run("trace", packet_id[:8])
    assert first.status == 0
    assert first.out.startswith(f"{REQUEST}\n")
    assert "The gate opens at seven." in first.out
    assert f"packet {packet_id[:8]}, session work" in first.out
    for args in ((packet_id, "--session", "work"), ()):
        assert cli.run("trace", *args).out == first.out
    assert cli.run("trace", "last", "--json").out == written
    ask(cli, "Hello")
    assert cli.run("trace", packet_id, "--json").out == written, "without later messages"
    ask(cli, "Hello", "home.and.garden")
    assert f"packet {packet_id[:8]}" not in cli.run("trace").out
    assert json.loads(cli.run("trace", "--session", "work", "--json").out)["header"]["session_id"] == "work"


def test_a_waiting_turn_is_shown_with_its_question(cli: CommandLine) -> None:
    asked = cli.run("ask", 'Write "hello" into new.txt', "--session", "work", "--allow-writes", "--json")
    for found in ("last", json.loads(asked.out)["header"]["packet_id"]):
        shown = cli.run("trace", found)
        assert "May this run?\n  │ ai.write\n" in shown.out
        assert "awaiting approval" in shown.out


def test_a_packet_of_a_deleted_session_is_not_found(cli: CommandLine) -> None:
    packet_id = json.loads(ask(cli, "Hello"))["header"]["packet_id"]
    settings = Settings(home=cli.home)

    async def forget() -> None:
        await find_packet(settings, packet_id, None)
        async with open_sessions(settings) as sessions:
            await sessions.forget("work")

    asyncio.run(forget())
    assert cli.run("trace", packet_id).status == 2


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (("last",), "packetgate ask"),
        (("last", "--session", "none"), "'none'"),
        (("12345678",), "12345678"),
        (("nothing\x1b[2J.json",), "nothing\ufffd[2J.json"),
        (("two\u00a0words\u2003apart.json",), "two words apart.json"),
    ],
)
def test_a_missing_packet_is_one_line(cli: CommandLine, args: tuple[str, ...], names: str) -> None:
    done = cli.run("trace", *args)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert names in done.err
