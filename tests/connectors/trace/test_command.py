"""`packetgate trace`."""

import json

import pytest
from support.command_line import CommandLine

REQUEST = "Read plan.txt"


def ask(cli: CommandLine) -> str:
    """Ask, and return the packet as `ask --json` prints it."""
    return cli.run("ask", REQUEST, "--session", "work", "--json").out


def test_id_last_and_file_show_the_same_trace(cli: CommandLine) -> None:
    written = ask(cli)
    packet_id = json.loads(written)["header"]["packet_id"]
    (cli.folder / "packet.json").write_text(written)
    first = cli.run("trace", packet_id[:8])
    assert first.status == 0
    assert first.out.startswith(f"{REQUEST}\n")
    assert "The gate opens at seven." in first.out
    assert f"packet {packet_id[:8]}, session work" in first.out
    for args in ((packet_id, "--session", "work"), (), ("packet.json",)):
        assert cli.run("trace", *args).out == first.out
    assert cli.run("trace", "last", "--json").out == written


def test_a_waiting_turn_is_shown_with_its_question(cli: CommandLine) -> None:
    cli.run("ask", 'Write "hello" into new.txt', "--session", "work", "--allow-writes")
    shown = cli.run("trace", "--session", "work")
    assert "May this run?\n  │ ai.write\n" in shown.out
    assert "awaiting approval" in shown.out


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (("last",), "packetgate ask"),
        (("last", "--session", "none"), "'none'"),
        (("12345678",), "12345678"),
        (("12345678", "--session", "none"), "'none'"),
        (("nothing\x1b[2J.json",), "nothing\ufffd[2J.json"),
        ((".",), ".: "),
        (("x" * 5_000,), "xxx"),
        (("last", "--url", "http://127.0.0.1:9"), "http://127.0.0.1:9"),
    ],
)
def test_a_missing_packet_is_one_line(cli: CommandLine, args: tuple[str, ...], names: str) -> None:
    done = cli.run("trace", *args, NO_PROXY="127.0.0.1")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert names in done.err
