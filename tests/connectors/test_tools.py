"""`packetgate tools`: tools and categories, and kinds of conversation."""

import json
import sys
from pathlib import Path

import pexpect
import pytest
from support.builtin_tools import ALL, RISKS
from support.command_line import CommandLine
from support.terminals import printed, terminal

OWN = """
permanent = ["ai.read"]

[pools]
editing = ["ai.write"]

[tools."embedding.query"]
brief = "Look it up."
category = "knowledge"
external = true
"""
SCRIPT = Path(__file__).parents[1] / "support" / "stdio_server.py"


def test_the_list_shows_risk_category_and_brief_description(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text(OWN)
    done = cli.run("tools", COLUMNS="40", FORCE_COLOR="1")  # the output to a pipe ignores width and colour
    assert (done.status, done.err) == (0, "")
    _, *rows = done.out.splitlines()
    assert {row.split()[0]: row.split()[1] for row in rows} == RISKS
    assert "embedding.query read built in knowledge, external: Look it up." in [" ".join(row.split()) for row in rows]
    assert all(row.rstrip() == row and "\x1b" not in row for row in rows)
    assert "last_line" not in done.out
    with terminal(cli, "tools", COLUMNS="80") as child:
        child.expect(pexpect.EOF)
        rows = printed(child).splitlines()
    assert max(map(len, rows)) <= 80


def test_tools_can_be_filtered_by_name_server_or_category(cli: CommandLine) -> None:
    (cli.folder / "own.toml").write_text(OWN)
    own = {"PACKETGATE_CONFIG": "own.toml"}
    (tool,) = json.loads(cli.run("tools", "knowledge", "--json", **own).out)
    assert (tool["name"], tool["category"], tool["is_external"]) == ("embedding.query", "knowledge", True)
    listed = json.loads(cli.run("tools", "AI", "--json", **own).out)
    assert [one["name"] for one in listed] == [name for name in ALL if name != "embedding.query"]
    assert all(one["input_schema"]["type"] == "object" for one in listed)
    in_full = cli.run("tools", "ai_read").out
    assert "last_line" in in_full
    assert "ai.write" not in in_full


def test_a_session_keeps_its_kind_of_conversation(cli: CommandLine) -> None:
    (cli.folder / "packetgate.toml").write_text(OWN)
    assert cli.run("chat", "--session", "s", "--context", "editing", given=b"Read plan.txt\n/quit\n").status == 0
    kept = json.loads(cli.run("ask", "--json", "--session", "s", "Read plan.txt again").out)["context"]
    assert kept["context_type"] == "editing"
    assert {"tool_name": "ai.read", "reason": "permanent"}.items() <= kept["palette"][0].items()
    other = json.loads(cli.run("ask", "--json", "--session", "s", "--context", "reading", "Read todo.txt").out)
    assert other["context"]["context_type"] == "reading"


def test_each_unusable_entry_of_mcp_json_causes_one_line_and_the_others_work(cli: CommandLine, tmp_path: Path) -> None:
    (folder := tmp_path / "server").mkdir()
    (folder / "may_start").touch()
    good = {"type": "stdio", "command": sys.executable, "args": [str(SCRIPT), str(folder)]}
    servers = {
        "@scope/pkg": {**good, "excludeTools": ["read_once*"]},
        "asks": {**good, "env": {"KEY": "${input:key}"}},
        "off": {**good, "disabled": True},
        "unset": {**good, "env": {"KEY": "${NOT_SET_ANYWHERE}"}},
    }
    (cli.folder / "mcp.json").write_text(f"// of an editor\n{json.dumps({'servers': servers, 'inputs': []})[:-1]},}}")
    listed = cli.run("tools")
    assert listed.status == 0
    assert "scope-pkg.get_pid" in listed.out
    assert "read_once_killed" not in listed.out
    assert [name for name in servers if f"'{name}'" in listed.err] == ["@scope/pkg", "asks"]
    examined = cli.run("doctor", "--json")
    assert examined.status == 1
    found = [(one["verdict"], one["what"], one["how"]) for one in json.loads(examined.out)]
    remarks = [(verdict, how.split("'")[1]) for verdict, what, how in found if what == "mcp.json"]
    assert remarks == [("note", "@scope/pkg"), ("bad", "asks"), ("note", "off")]
    assert any(what == "unset" and "NOT_SET_ANYWHERE" in how for _, what, how in found)


@pytest.mark.parametrize("name", ["flies", "ai.raed"])
def test_an_unknown_name_is_an_error(cli: CommandLine, name: str) -> None:
    done = cli.run("tools", name)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert name in done.err
