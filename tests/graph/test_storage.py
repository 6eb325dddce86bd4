"""Storage of sessions, and errors if it is unusable."""

import pytest
from support.command_line import CommandLine


def fails(cli: CommandLine, **variables: str) -> str:
    """Return the one-line error of an `ask`."""
    outcome = cli.run("ask", "Hello", **variables)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("packetgate: ")
    assert outcome.err.count("\n") == 1
    return outcome.err


@pytest.mark.parametrize("strict", ["true", "false"])
def test_sessions_restore_without_warnings(cli: CommandLine, strict: str) -> None:
    """LangGraph reads the variable at import, so a new process restores the session."""
    asked = cli.run("ask", "Read plan.txt", "--session", "s")
    waiting = cli.run("ask", 'Write "x" to new.txt', "--session", "s", "--allow-writes")
    denied = cli.start("answer", "no", "--session", "s", LANGGRAPH_STRICT_MSGPACK=strict)
    hello = cli.start("ask", "Hello", "--session", "s", "--json", LANGGRAPH_STRICT_MSGPACK=strict)
    ends = [(outcome.status, outcome.err) for outcome in (asked, waiting, denied, hello)]
    assert ends == [(0, ""), (3, ""), (0, ""), (0, "")]
    assert "The gate opens at seven." in hello.out  # kept in the ledger


@pytest.mark.parametrize("content", [b"this is no database\n" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_corrupt_database_is_named_and_kept(cli: CommandLine, content: bytes) -> None:
    cli.home.mkdir()
    database = cli.home / "packetgate.db"
    database.write_bytes(content)
    said = fails(cli)
    assert f"{database}: not a usable session file" in said
    assert "move it away, or set PACKETGATE_HOME" in said
    assert database.read_bytes() == content


def test_a_home_that_is_a_file_is_named(cli: CommandLine) -> None:
    cli.home.write_text("in the way\n")
    assert f"{cli.home / 'packetgate.db'}: cannot store sessions" in fails(cli)
