"""A copied `mcp.json` through the command line: what works is there, and what is odd costs one line."""

import json
import sys
from pathlib import Path

from support.command_line import CommandLine

SCRIPT = Path(__file__).parents[1] / "support" / "stdio_server.py"


def test_one_line_for_each_odd_entry_and_the_rest_works(cli: CommandLine, tmp_path: Path) -> None:
    (folder := tmp_path / "server").mkdir()
    (folder / "may_start").touch()
    good = {
        "type": "stdio",
        "command": sys.executable,
        "args": [str(SCRIPT), str(folder)],
        "excludeTools": ["read_never"],
    }
    servers = {
        "@scope/pkg": good,
        "asks": {**good, "env": {"KEY": "${input:key}"}},
        "off": {**good, "disabled": True},
        "unset": {**good, "env": {"KEY": "${NOT_SET_ANYWHERE}"}},
    }
    (cli.folder / "mcp.json").write_text(f"// of an editor\n{json.dumps({'servers': servers, 'inputs': []})[:-1]},}}")
    listed = cli.run("tools")
    assert listed.status == 0
    assert "scope-pkg.get_pid" in listed.out
    assert "read_never" not in listed.out
    assert "off." not in listed.out
    assert [line.partition("server ")[2] for line in listed.err.splitlines()] == [
        "'@scope/pkg': it is called scope-pkg here",
        "'asks': left out: an editor asks for ${input:key}: write ${NAME} and set that variable",
    ]
    examined = cli.run("doctor", "--json")
    found = [(one["verdict"], one["what"], one["how"]) for one in json.loads(examined.out)]
    assert [one for one in found if one[1] == "mcp.json"] == [
        ("note", "mcp.json", "server '@scope/pkg': it is called scope-pkg here"),
        (
            "bad",
            "mcp.json",
            "server 'asks': left out: an editor asks for ${input:key}: write ${NAME} and set that variable",
        ),
        ("note", "mcp.json", "server 'off': switched off"),
    ]
    assert any(what == "unset" and "NOT_SET_ANYWHERE is not set" in how for _, what, how in found)
    assert examined.status == 1
