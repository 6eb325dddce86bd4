"""`packetgate.toml`'s rules and remembered answers, as a user meets them."""

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


def test_a_rule_spares_the_question_and_nothing_else(ruled: CommandLine):
    done = ruled.run(*ASK, 'Write "hello" to drafts/a.txt')
    assert done.status == 0
    assert (ruled.folder / "drafts" / "a.txt").read_text() == "hello"
    for outside in ("b.txt", "drafts/../c.txt"):
        assert ruled.run(*ASK, f'Write "hello" to {outside}').status == 3
    assert not [name for name in ("b.txt", "c.txt") if (ruled.folder / name).exists()]


def test_an_answer_is_remembered_listed_used_and_taken_back(ruled: CommandLine):
    asked = ruled.run(*ASK, "--session", "one", 'Write "hello" to notes/a.txt')
    assert asked.status == 3
    assert "`always` remembers: allow ai.write with" in " ".join(asked.out.replace("│", " ").split())
    assert ruled.run("answer", "always", "--session", "one").status == 0
    (grant,) = json.loads(ruled.run("policy", "--json").out)["grants"]
    assert (grant["tool"], grant["used"], grant["uses"]) == ("ai.write", 0, 3)
    assert grant["line"] in " ".join(ruled.run("policy").out.split())
    (ruled.folder / "notes" / "a.txt").unlink()
    assert ruled.run(*ASK, "--session", "two", 'Write "hello" to notes/a.txt').status == 0
    assert (ruled.folder / "notes" / "a.txt").read_text() == "hello"
    assert json.loads(ruled.run("policy", "--json").out)["grants"][0]["used"] == 1
    assert ruled.run("policy", "--revoke", grant["grant_id"]).status == 0
    again = ruled.run("policy", "--revoke", grant["grant_id"])
    assert again.status == 2
    assert "no grant" in again.err
    (ruled.folder / "notes" / "a.txt").unlink()
    assert ruled.run(*ASK, "--session", "three", 'Write "hello" to notes/a.txt').status == 3
    assert json.loads(ruled.run("policy", "--all", "--json").out)["grants"][0]["revoked"]


def test_without_leave_nothing_is_offered_nor_remembered(cli: CommandLine):
    asked = cli.run(*ASK, "--session", "one", 'Write "hello" to a.txt')
    assert "remembers" not in asked.out
    refused = cli.run("answer", "always", "--session", "one")
    assert refused.status == 3
    assert "'always' is not offered" in " ".join(refused.out.replace("│", " ").split())
    assert not (cli.folder / "a.txt").exists()
    assert "nothing may be remembered" in cli.run("policy").out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('effect = "alow"\ntool = "ai.write"', "effect"),
        ('effect = "allow"', "names what it is for"),
        ('effect = "allow"\ntool = "ai.write"\nargumets = {}', "argumets"),
        ('effect = "allow"\ntool = "ai.write"\nchannels = ["slack"]', "channels"),
    ],
)
def test_a_rule_that_is_misspelt_stops_everything(cli: CommandLine, line: str, says: str):
    (cli.folder / "packetgate.toml").write_text(f"[[policy.rules]]\n{line}\n")
    done = cli.run(*ASK, 'Write "hello" to a.txt')
    assert done.status == 2
    assert "packetgate.toml" in done.err
    assert says in done.err


def test_a_rule_for_a_tool_that_is_not_there_is_told(cli: CommandLine):
    (cli.folder / "packetgate.toml").write_text('[[policy.rules]]\neffect = "deny"\ntool = "ai.wrte"\n')
    assert "ai.wrte" in cli.run("doctor").out


def test_a_rule_that_can_never_hold_is_told(cli: CommandLine):
    rules = (
        'effect = "allow"\ntool = "ai.write"\narguments = { path = "../shared/*" }',
        'effect = "allow"\ntool = "ai.write"\narguments = { file = "notes/*" }',
        'effect = "ask"\ntool = "ai.write"\narguments = { mode = "replcae" }',
        'effect = "deny"\ntool = "ai.write"\narguments = { path = "private/**" }',
    )
    (cli.folder / "packetgate.toml").write_text("".join(f"[[policy.rules]]\n{one}\n" for one in rules))
    said = " ".join(cli.run("doctor").out.split())
    assert 'policy.rules.0: it can never hold: path = "../shared/*": what allows never follows' in said
    assert "policy.rules.1: it can never hold: ai.write has no parameter 'file'" in said
    assert "policy.rules.2: it can never hold: 'mode' of ai.write is" in said
    assert "policy.rules.3" not in said
