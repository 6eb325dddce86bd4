"""`packetgate doctor` checks the configuration, servers and models."""

import json

import pytest
from support.command_line import CommandLine


def doctor(cli: CommandLine, *args: str, **variables: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """Return the exit status, and the last finding (verdict, text) by subject."""
    done = cli.run("doctor", "--json", *args, **variables)
    assert done.out, done.err
    return done.status, {one["what"]: (one["verdict"], one["how"]) for one in json.loads(done.out)}


def test_everything_is_ok_out_of_the_box(cli: CommandLine) -> None:
    done = cli.run("doctor")
    assert done.status == 0
    assert "reflex (no model)" in done.out
    assert str(cli.home / "packetgate.db") in done.out.replace("\n", "")


def test_missing_programs_servers_and_models_are_named(cli: CommandLine) -> None:
    servers = {"gone": {"command": "no-such-program"}, "sick": {"command": "sh", "args": ["-c", "echo no token >&2"]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"builtin": True, "mcpServers": servers}))
    status, found = doctor(cli, "--lite", "llamacpp:no.gguf")
    assert status == 1
    assert "'no-such-program' is not installed" in found["gone"][1]
    assert found["ai"] == ("ok", "14 tools")
    assert "no token" not in found["sick"][1], "the output of a server goes only to its log"
    assert "no token" in (cli.home / "logs" / "sick.log").read_text()
    assert found["models"][0] == "bad"
    assert "no.gguf" in found["models"][1]


def test_the_sandbox_is_described(cli: CommandLine) -> None:
    assert doctor(cli)[1]["sandbox"][0] in {"ok", "note"}
    (cli.folder / "packetgate.toml").write_text('sandbox = "off"\n')
    assert doctor(cli)[1]["sandbox"][0] == "note"


@pytest.mark.parametrize("table", ["[setings]\nenabled = false", "[settings]\nconfidence_threshold = 9"])
def test_each_unusable_file_is_one_finding(cli: CommandLine, table: str) -> None:
    (cli.folder / "packetgate.toml").write_text(table)
    (cli.folder / "mcp.json").write_text("[]")
    done = cli.run("doctor", "--json")
    bad = [one["how"] for one in json.loads(done.out) if one["verdict"] == "bad"]
    assert done.status == 1
    assert sorted(how.partition(":")[0] for how in bad) == ["mcp.json", "packetgate.toml"]


def test_patterns_and_rules_that_match_nothing_are_notes(cli: CommandLine) -> None:
    preferences = 'permanent = ["ai.raed"]\n[[policy.rules]]\neffect = "deny"\ntool = "ai.wrte"\n'
    (cli.folder / "packetgate.toml").write_text(preferences)
    done = cli.run("doctor", "--json")
    assert done.status == 0
    notes = [one["how"] for one in json.loads(done.out) if one["verdict"] == "note" and one["what"] == "preferences"]
    places = [how.split(": ")[1] for how in notes]
    assert places == ["permanent", "policy.rules.0"]
    assert "\n! packetgate.toml: permanent: 'ai.raed'" in cli.run("tools").out
