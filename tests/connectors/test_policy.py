"""Policy rules and remembered answers."""

import json

import pytest
from support.command_line import CommandLine

ASK = ("ask", "--allow-writes")
POLICY = """
[policy]
remember = "always"
remember_uses = 3

[[policy.rules]]
effect = "allow"
tool = "ai.write"
arguments = { path = "drafts/*", content = "**", mode = "**" }
"""


@pytest.fixture
def ruled(cli: CommandLine) -> CommandLine:
    (cli.folder / "packetgate.toml").write_text(POLICY)
    (cli.folder / "drafts").mkdir()
    return cli


def test_an_answer_is_remembered_used_listed_and_revoked(ruled: CommandLine):
    asked = ruled.run(*ASK, "--session", "one", 'Write "hello" to notes/a.txt')
    assert asked.status == 3
    assert "`always` remembers: allow ai.write with" in " ".join(asked.out.replace("│", " ").split())
    assert ruled.run("answer", "always", "--session", "one").status == 0
    (ruled.folder / "notes" / "a.txt").unlink()
    assert ruled.run(*ASK, "--session", "two", 'Write "hello" to notes/a.txt').status == 0
    assert (ruled.folder / "notes" / "a.txt").read_text() == "hello"
    _, grant = json.loads(ruled.run("policy", "--json").out)
    assert (grant["tool"], grant["used"], grant["uses"]) == ("ai.write", 1, 3)
    assert grant["says"] in " ".join(ruled.run("policy").out.split())
    assert ruled.run("policy", "--revoke", grant["grant_id"]).status == 0
    again = ruled.run("policy", "--revoke", grant["grant_id"])
    assert (again.status, grant["grant_id"] in again.err) == (2, True)
    assert len(json.loads(ruled.run("policy", "--json").out)) == 1


def test_by_default_nothing_is_remembered(cli: CommandLine):
    asked = cli.run(*ASK, "--session", "one", 'Write "hello" to a.txt')
    assert "remembers" not in asked.out
    refused = cli.run("answer", "always", "--session", "one")
    assert refused.status == 3
    assert not (cli.folder / "a.txt").exists()
    assert "remember = never" in cli.run("policy").out
