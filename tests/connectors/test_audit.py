"""`packetgate audit`: print, export and verify the journal."""

import json
import re
import sqlite3
from contextlib import closing
from getpass import getuser

import pytest
from support.command_line import CommandLine

from packetgate.graph.journal import JournalChain, JournalRow


@pytest.fixture
def kept(cli: CommandLine) -> CommandLine:
    """A session with a read, a write that was approved, and one that was denied."""
    assert cli.run("ask", "Read plan.txt", "--session", "s").status == 0
    for answer in ("yes", "no"):
        assert cli.run("ask", f'Write "{answer}" to {answer}.txt', "--session", "s", "--allow-writes").status == 3
        cli.run("answer", answer, "--session", "s")
    return cli


def test_entries_are_printed_by_turn(kept: CommandLine) -> None:
    assert kept.run("ask", "Hello", "--session", "other").status == 0
    done = kept.run("audit", "--session", "s")
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


def test_the_export_is_complete(kept: CommandLine) -> None:
    lines = kept.run("audit", "--json").out.splitlines()
    rows, chain = [JournalRow(**json.loads(line)) for line in lines], JournalChain()
    assert [chain.check_row(row) for row in rows] == [None] * len(rows)
    assert {"turn_opened", "call_proposed", "call_reviewed", "question_asked", "call_approved", "call_denied",
            "call_started", "call_ended"} <= {row.event for row in rows}  # fmt: skip
    started = next(row.recorded_entry.entry.detail for row in rows if row.event == "call_started")
    assert {"call", "definition", "server", "idempotency_key"} <= started.keys()


def test_changed_and_deleted_rows_are_found(kept: CommandLine) -> None:
    assert kept.run("audit", "--verify").status == 0
    head = json.loads(kept.run("audit", "--json").out.splitlines()[-1])["hash"]
    assert kept.run("audit", "--verify", "--head", head[:16]).status == 0
    with closing(sqlite3.connect(kept.home / "packetgate.db")) as database, database:
        database.executescript(
            "DROP TRIGGER journal_kept; DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal);"
            "UPDATE journal_head SET (seq, hash) = (SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1);"
        )
    changed = kept.run("audit", "--verify")
    assert (changed.status, "triggers" in changed.out) == (1, True)
    confirmed = next(
        row
        for row in map(json.loads, kept.run("audit", "--json").out.splitlines())
        if row["event"] == "triggers_replaced"
    )
    assert kept.run("audit", "--verify", "--head", confirmed["hash"][:12]).status == 0, (
        "only --head finds deleted last rows"
    )
    cut = kept.run("audit", "--verify", "--head", head[:16])
    assert (cut.status, head[:16] in cut.out) == (1, True)
    with closing(sqlite3.connect(kept.home / "packetgate.db")) as database, database:
        database.executescript(
            "DROP TRIGGER journal_unchanged; UPDATE journal SET event = 'call_denied' WHERE seq = 3;"
        )
    broken = kept.run("audit", "--verify")
    assert (broken.status, "row 3 " in broken.out) == (1, True)


def test_an_empty_journal_is_valid(cli: CommandLine) -> None:
    assert (cli.run("audit").out, cli.run("audit", "--verify").status) == ("", 0)
    assert not (cli.home / "packetgate.db").exists()


@pytest.mark.parametrize("options", [("--head", "x"), ("--verify", "--json"), ("--verify", "--session", "s")])
def test_contradictory_options_are_refused(cli: CommandLine, options: tuple[str, ...]) -> None:
    assert cli.run("audit", *options).status == 2
