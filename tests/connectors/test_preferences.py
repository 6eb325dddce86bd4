"""`packetgate.toml` through the command: what it changes is seen, and what is wrong with it is told."""

import json
from typing import Any

import pexpect
from support.builtin_tools import ALL
from support.command_line import CommandLine
from support.terminals import said, terminal

OWN = """
permanent = ["ai.read"]

[pools]
editing = ["ai.write"]

[tools."embedding.query"]
brief = "Look it up."
category = "knowledge"
external = true
"""
TYPO = """
permanent = ["ai.raed"]

[pools]
editing = ["mail.*"]
"""
BAD = "colour = 1"


def lines_of(out: str) -> list[str]:
    return [" ".join(line.split()) for line in out.splitlines()]


def packet_of(cli: CommandLine, *args: str) -> dict[str, Any]:
    packet: dict[str, Any] = json.loads(cli.run("ask", "--json", *args).out)
    return packet


def test_tools_are_listed_as_the_user_wants_them_seen(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text(OWN)
    done = cli.run("tools")
    assert (done.status, done.err) == (0, "")
    lines = lines_of(done.out)
    assert "embedding.query read knowledge, external: Look it up." in lines
    assert any(line.startswith("ai.read read files: Read a text file") for line in lines)
    assert not any(line.startswith("!") for line in lines)
    with terminal(cli, "tools", COLUMNS="80") as child:
        child.expect(pexpect.EOF)
        rows = said(child).splitlines()
    assert max(map(len, rows)) <= 80
    assert len(rows) < 4 * len(ALL)
    assert cli.run("tools", "embedding.query").out.startswith("embedding.query  read  knowledge, external\nSearch the")


def test_tools_of_a_category_or_a_server(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text(BAD)
    (cli.folder / "own.toml").write_text(OWN)
    (tool,) = json.loads(cli.run("tools", "knowledge", "--json", PACKETGATE_CONFIG="own.toml").out)
    assert (tool["name"], tool["category"], tool["is_external"]) == ("embedding.query", "knowledge", True)
    listed = cli.run("tools", "AI", PACKETGATE_CONFIG="own.toml").out
    names = {line.split()[0] for line in listed.splitlines() if not line.startswith(" ")}
    assert names == {"tool", *ALL} - {"embedding.query"}
    assert "max_lines" not in listed
    assert "max_lines" in cli.run("tools", "AI", "--full", PACKETGATE_CONFIG="own.toml").out


def test_a_pattern_without_a_tool_is_told_and_is_no_error(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text(TYPO)
    listed = cli.run("tools")
    assert listed.status == 0
    assert "\n! packetgate.toml: permanent: 'ai.raed' fits no tool; nearest: ai.read" in listed.out
    assert "\n! packetgate.toml: pools.editing: 'mail.*' fits no tool\n" in listed.out
    looked = cli.run("doctor")
    assert looked.status == 0
    words = " ".join(looked.out.split())
    assert "ok preferences packetgate.toml: permanent 1, pools 1, tools 0" in words
    assert "note preferences packetgate.toml: permanent: 'ai.raed' fits no tool" in words


def test_doctor_finds_every_file_that_cannot_be_used(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text(BAD)
    (cli.folder / "mcp.json").write_text("[]")
    done = cli.run("doctor")
    assert done.status == 1
    words = " ".join(done.out.split())
    assert "bad servers mcp.json" in words
    assert "bad preferences packetgate.toml: colour" in words


def test_a_session_is_of_the_kind_it_was_last_given(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text(OWN)
    assert cli.run("chat", "--session", "s", "--context", "editing", given=b"Read plan.txt\n/quit\n").status == 0
    kept = packet_of(cli, "--session", "s", "Read plan.txt again")
    assert (kept["context"]["context_type"], kept["context"]["shift"]) == ("editing", "")
    assert {"tool_name": "ai.read", "reason": "permanent"}.items() <= kept["context"]["palette"][0].items()
    other = packet_of(cli, "--session", "s", "--context", "reading", "Read todo.txt")
    assert (other["context"]["context_type"], other["context"]["shift"]) == ("reading", "from editing to reading")
