"""A question at first use, or a configuration line, confirms a tool that looks like a read."""

import json
import re
import sys
from collections.abc import Callable

import pytest
from support.command_line import CommandLine, Outcome

SERVER = """
import pathlib
from fastmcp import FastMCP

server = FastMCP("notes")


@server.tool
def list_notes(action: str = "") -> str:
    "{about}"
    with pathlib.Path("ran.txt").open("a") as file:
        file.write("x")
    return "milk and bread"


server.run(show_banner=False)
"""
CONFIRMED = 'tools."notes.list_notes".risk = "read"'
WAITING = 3


@pytest.fixture
def ask(cli: CommandLine) -> Callable[..., Outcome]:
    def run(session: str, *options: str) -> Outcome:
        return cli.run("ask", "List my notes", "--session", session, *options)

    return run


def serve(cli: CommandLine, about: str = "List all notes.") -> None:
    (cli.folder / "server.py").write_text(SERVER.replace("{about}", about))
    servers = {"notes": {"command": sys.executable, "args": ["server.py"]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def runs(cli: CommandLine) -> int:
    ran = cli.folder / "ran.txt"
    return len(ran.read_text()) if ran.exists() else 0


def grant_of(cli: CommandLine) -> str:
    (grant,) = json.loads(cli.run("policy", "--json").out)
    assert grant["effect"] == "trust"
    return str(grant["grant_id"])


@pytest.mark.slow
def test_trust_is_asked_once_and_holds_until_the_tool_changes_or_it_is_revoked(
    cli: CommandLine, ask: Callable[..., Outcome]
) -> None:
    serve(cli)
    asked = ask("one")
    assert (asked.status, runs(cli)) == (WAITING, 0)
    assert "looks like a read, but nothing confirms that. Trust it as a read?" in " ".join(
        asked.out.replace("┆", "").replace("↪", "").split()
    )
    assert "(yes, no, skip, trust)" in asked.out
    refused = cli.run("answer", "always", "--session", "one")
    assert "'always' is not offered; use one of: yes, no, trust" in " ".join(refused.out.split())
    answered = cli.run("answer", "trust", "--session", "one")
    assert (answered.status, runs(cli)) == (0, 1)
    assert "milk and bread" in answered.out
    assert (ask("two").status, runs(cli)) == (0, 2)  # each command is a separate process
    listed = cli.run("tools").out
    assert re.search(r"notes\.list_notes +read +your answer of \d{4}-\d\d-\d\d", listed)
    assert "read, said by your answer of" in cli.run("doctor", "-v").out
    serve(cli, "List all the notes.")
    assert (ask("three").status, runs(cli)) == (WAITING, 2)
    assert re.search(r"notes\.list_notes +write +nobody", cli.run("tools").out)
    serve(cli)
    assert (ask("four").status, runs(cli)) == (0, 3)
    assert cli.run("policy", "--revoke", grant_of(cli)).status == 0
    assert (ask("five").status, runs(cli)) == (WAITING, 3)


@pytest.mark.slow
def test_trust_does_not_cover_the_same_command_in_another_folder(cli: CommandLine, ask: Callable[..., Outcome]) -> None:
    serve(cli)
    ask("one")
    assert cli.run("answer", "trust", "--session", "one").status == 0
    other = CommandLine(cli.folder.with_name("other"), cli.home)  # where no server of `cli` can write
    other.folder.mkdir()
    serve(other)
    done = other.run("ask", "List my notes", "--session", "two")
    assert (done.status, runs(other)) == (WAITING, 0)


@pytest.mark.slow
def test_packetgate_toml_confirms_a_read(cli: CommandLine, ask: Callable[..., Outcome]) -> None:
    serve(cli)
    for session, switches in (("one", ()), ("two", ("--allow-writes",))):
        assert ask(session, *switches).status == WAITING
    doctor = " ".join(cli.run("doctor", "-v").out.split())
    assert "look like reads but count as writes, because nothing confirms that they only read: 1 (list_notes)" in doctor
    assert CONFIRMED in doctor
    (cli.folder / "packetgate.toml").write_text(f"{CONFIRMED}\n")
    cli.run("policy", "--confirm", "packetgate.toml")
    assert (ask("three").status, runs(cli)) == (0, 1)
    assert "nothing confirms" not in cli.run("doctor", "-v").out
