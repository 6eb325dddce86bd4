"""`packetgate audit`: print and export the journal."""

import json
import re
from getpass import getuser

import pytest
from support.command_line import CommandLine

from packetgate.graph.journal import JournalRow


@pytest.fixture
def audited_session(cli: CommandLine) -> CommandLine:
    """A session with a read, an approved write and a denied write."""
    assert cli.run("ask", "Read plan.txt", "--session", "s").status == 0
    for answer in ("yes", "no"):
        assert cli.run("ask", f'Write "{answer}" to {answer}.txt', "--session", "s", "--allow-writes").status == 3
        cli.run("answer", answer, "--session", "s")
    return cli


def test_entries_are_printed_by_turn(audited_session: CommandLine) -> None:
    assert audited_session.run("ask", "Hello", "--session", "other").status == 0
    done = audited_session.run("audit", "--session", "s")
    assert (done.status, done.err) == (0, "")
    turns = done.out.strip().split("\n\n")
    assert [turn.splitlines()[0].split(",")[0] for turn in turns] == ["session s"] * 3
    read, yes, no = (
        [re.sub(r"(, call )[0-9a-f]{8}$", r"\1ID", line[29:]) for line in turn.splitlines()[1:]] for turn in turns
    )
    assert read[0] == f"asked, by terminal {getuser()}: Read plan.txt"
    assert read[1].startswith("proposed (read): ai.read")
    assert read[2].startswith("reviewed ai.read, reflex: approved")
    assert read[3:] == ["started ai.read, attempt 1, call ID", "executed: ai.read: The gate opens at seven."]
    decided = next(line for line in yes if line.startswith("approved by the user: ai.write (question"))
    assert yes[yes.index(decided) + 1 :] == [
        "started ai.write, attempt 1, call ID",
        "executed: ai.write: Created yes.txt: 1 line, 3 bytes",
    ]
    assert no[-1].startswith("denied by the user: ai.write (question")


def test_the_export_is_complete(audited_session: CommandLine) -> None:
    lines = audited_session.run("audit", "--json").out.splitlines()
    rows = [JournalRow(**json.loads(line)) for line in lines]
    assert [row.seq for row in rows] == [*range(1, len(rows) + 1)]
    assert {"turn_opened", "call_proposed", "call_reviewed", "question_asked", "call_approved", "call_denied",
            "call_started", "call_ended"} <= {row.event for row in rows}  # fmt: skip
    started = next(row.recorded_entry.entry.detail for row in rows if row.event == "call_started")
    assert {"call", "definition", "server", "idempotency_key"} <= started.keys()


def test_without_a_database_nothing_is_printed_or_created(cli: CommandLine) -> None:
    assert (cli.run("audit").out, cli.run("audit", "--json").status) == ("", 0)
    assert not (cli.home / "packetgate.db").exists()


def test_a_session_without_entries_is_named(audited_session: CommandLine) -> None:
    done = audited_session.run("audit", "--session", "gone")
    assert (done.status, done.out, done.err) == (0, "", "The journal has no entry of the session 'gone'.\n")
