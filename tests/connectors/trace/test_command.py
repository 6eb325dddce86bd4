"""`packetgate trace` as a user runs it."""

import json

import pytest
from support.command_line import CommandLine, Outcome
from support.html_reading import read_html

REQUEST = "Read plan.txt"


def asked(cli: CommandLine, session: str = "work") -> str:
    """Ask, and return the packet as `ask --json` prints it."""
    return cli.run("ask", REQUEST, "--session", session, "--json").out


def refusal(outcome: Outcome) -> str:
    """Return the one line that a refusal is told in."""
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    return outcome.err


def test_a_packet_is_shown_by_its_id_by_last_and_from_a_file(cli: CommandLine) -> None:
    written = asked(cli)
    packet_id = json.loads(written)["header"]["packet_id"]
    (cli.folder / "packet.json").write_text(written)
    ways = [
        cli.run("trace", packet_id[:8]),
        cli.run("trace", packet_id, "--session", "work"),
        cli.run("trace"),
        cli.run("trace", "packet.json"),
        cli.run("trace", "-", given=written.encode()),
    ]
    first = ways[0]
    assert first.status == 0
    assert first.out.startswith(f"{REQUEST}\n")
    assert "The gate opens at seven." in first.out
    assert f"packet {packet_id[:8]}, session work" in first.out
    assert [one.out == first.out for one in ways] == [True] * len(ways)


def test_json_is_the_packet_as_it_was_printed_before(cli: CommandLine) -> None:
    written = asked(cli)
    assert cli.run("trace", "last", "--json").out == written


def test_a_waiting_turn_is_shown_with_its_question(cli: CommandLine) -> None:
    cli.run("ask", 'Write "hello" into new.txt', "--session", "work", "--allow-writes")
    shown = cli.run("trace", "--session", "work")
    assert "May this run?\n  │ ai.write\n" in shown.out
    assert "awaiting approval" in shown.out


def test_a_page_is_saved_and_never_over_another_file(cli: CommandLine) -> None:
    asked(cli)
    saved = cli.run("trace", "last", "--html", "turn.html", "--json")
    assert (saved.status, saved.err.strip()) == (0, "saved turn.html")
    json.loads(saved.out)
    page = read_html((cli.folder / "turn.html").read_text())
    assert REQUEST in page.texts
    assert "No model was asked: reflexes decided." in page.texts
    (cli.folder / "turn.html").write_text("mine")
    assert "turn.html: is there already: give another name, or --force" in refusal(
        cli.run("trace", "last", "--html", "turn.html")
    )
    assert (cli.folder / "turn.html").read_text() == "mine"
    assert cli.run("trace", "last", "--html", "turn.html", "--force").status == 0
    assert (cli.folder / "turn.html").read_text().startswith("<!doctype html>")


def test_a_page_of_a_file_says_that_no_prompts_were_looked_up(cli: CommandLine) -> None:
    packet = json.loads(asked(cli))
    packet["reasoning"]["reflection_log"][1]["decided_by"] = "model"
    cli.run("trace", "-", "--html", "turn.html", given=json.dumps(packet).encode())
    assert "made from a file" in (cli.folder / "turn.html").read_text()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("trace", "last"), "no turn is on record yet"),
        (("trace", "last", "--session", "none"), "session 'none' has no turn"),
        (("trace", "12345678"), "no packet 12345678 is on record"),
        (("trace", "nothing\x1b[2J.json"), "nothing\ufffd[2J.json: neither a file nor a packet's id"),
        (("trace", "."), "neither a file nor a packet's id"),
        (("trace", "x" * 5_000), "neither a file nor a packet's id"),
        (("trace", "last", "--url", "http://127.0.0.1:9"), "no LangGraph-API server can be reached there"),
    ],
)
def test_what_cannot_be_found_is_told_in_a_line(cli: CommandLine, args: tuple[str, ...], told: str) -> None:
    assert told in refusal(cli.run(*args, NO_PROXY="127.0.0.1"))


def test_a_page_that_cannot_be_written_is_told_in_a_line(cli: CommandLine) -> None:
    outcome = cli.run("trace", "-", "--html", "missing/turn.html", "--json", given=asked(cli).encode())
    assert refusal(outcome) == "packetgate: missing/turn.html: cannot be written: No such file or directory\n"


def test_force_goes_with_a_page(cli: CommandLine) -> None:
    outcome = cli.run("trace", "last", "--force")
    assert outcome.status == 2
    assert "goes with --html" in outcome.err
