"""`packetgate doctor` checks the configuration, servers and models."""

import json

import pytest
from support.builtin_tools import ALL
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
    assert "2 built in" in done.out
    assert str(cli.home / "packetgate.db") in done.out.replace("\n", "")


def test_missing_programs_servers_and_models_are_named(cli: CommandLine) -> None:
    servers = {"gone": {"command": "no-such-program"}, "sick": {"command": "sh", "args": ["-c", "echo no token >&2"]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"builtin": True, "mcpServers": servers}))
    status, found = doctor(cli, "--lite", "llamacpp:no.gguf")
    assert status == 1
    assert "'no-such-program' is not installed" in found["gone"][1]
    assert found["servers"][1].startswith("2 built in, 2 from mcp.json; ")
    assert found["ai"] == ("ok", f"{len([name for name in ALL if name.startswith('ai.')])} tools")
    assert found["sick"][0] == "bad"
    assert found["sick"][1].startswith("no token; ")
    assert found["models"][0] == "bad"
    assert "no.gguf" in found["models"][1]


TRACEBACK = """Traceback (most recent call last):
  File "lib/site-packages/notes/server.py", line 3, in main
AttributeError: 'Server' object has no attribute 'list_resources'"""


@pytest.mark.parametrize(
    ("output", "shown", "fix"),
    [
        ("cannot start\nset NOTES_KEY first", "set NOTES_KEY first", "its output is in "),
        ("npm error 404 Not Found\nnpm error A complete log of this run is in x", "npm error 404 Not Found", "output"),
        ("Error: EROFS: read-only file system, mkdir\n    at run (a.js)\n\nNode.js v24", "Error: EROFS", '"sandbox": '),
        (TRACEBACK, TRACEBACK.splitlines()[-1], '"args": ["--with", "mcp<2", "notes"]'),
    ],
)
def test_a_dying_server_is_the_first_finding_with_reason_and_fix(
    cli: CommandLine, output: str, shown: str, fix: str
) -> None:
    launcher = cli.folder / "uvx"
    launcher.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{output}\nEND\n")
    launcher.chmod(0o700)
    servers = {"notes": {"command": str(launcher), "args": ["notes"]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    done = cli.run("doctor")
    first, second, *others = done.out.splitlines()
    assert done.status == 1
    assert first.startswith(f"bad   notes        {shown}")
    assert second.strip().startswith("→ ")
    assert fix in second
    assert len(others) < 12
    assert len(cli.run("doctor", "-v").out.splitlines()) > len(others) + 2


@pytest.mark.parametrize("placeholder", ["/path/to/notes", "YOUR_KEY", "<your token>", "--key=YOUR_API_KEY"])
def test_a_placeholder_is_named_without_failure(cli: CommandLine, placeholder: str) -> None:
    servers = {"notes": {"command": "sh", "args": ["-c", "exit 1", placeholder]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    status, found = doctor(cli)
    assert status == 0
    assert found["notes"] == (
        "note",
        f"a placeholder is to be filled in mcp.json: {placeholder.removeprefix('--key=')}",
    )


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
