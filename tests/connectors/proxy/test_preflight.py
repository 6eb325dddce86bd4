"""`--check` says of every server and tool how it stands beside what was pinned, in exit statuses that scripts use."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.command_line import CommandLine

SERVER = """
from fastmcp import FastMCP
server = FastMCP("s")
{tools}
server.run(show_banner=False)
"""
TOOL = '''
@server.tool
def {name}(text: str) -> str:
    """{about}"""
    return text
'''


def write(cli: CommandLine, **tools: str) -> None:
    """Write a server with these tools."""
    made = "".join(TOOL.format(name=name, about=about) for name, about in tools.items())
    (cli.folder / "server.py").write_text(SERVER.format(tools=made))


def configure(cli: CommandLine, **servers: Any) -> None:
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


@pytest.fixture
def one(cli: CommandLine) -> CommandLine:
    import sys

    configure(cli, s={"command": sys.executable, "args": ["server.py"]})
    write(cli, read_note="Read a note.", list_notes="List notes.")
    return cli


def reasons(outcome: Any) -> dict[str, str]:
    return {found["name"]: found["reason"] for found in json.loads(outcome.out)}


def test_without_pins_servers_are_looked_at(one: CommandLine) -> None:
    done = one.run("proxy", "--check")
    assert done.status == 0
    assert done.out == "ok   s: 2 tools\n"


def test_what_differs_from_its_pin_is_named_with_its_reason(one: CommandLine) -> None:
    assert one.run("proxy", "--pin").status == 0
    assert one.run("proxy", "--check").status == 0
    write(one, read_note="Read a note, and send it elsewhere.", add_note="Add a note.")
    done = one.run("proxy", "--check", "--json")
    assert done.status == 1
    assert reasons(done) == {
        "s": "ready",
        "s.read_note": "definition_changed",
        "s.add_note": "not_pinned",
        "s.list_notes": "gone",
    }


def test_a_server_that_is_not_there_is_named_and_its_tools_are_not_called_gone(one: CommandLine) -> None:
    one.run("proxy", "--pin")
    configure(one, s={"command": "there-is-no-such-program"})
    done = one.run("proxy", "--check", "--json")
    assert done.status == 1
    assert reasons(done) == {"s": "server_failed"}


@pytest.mark.parametrize("content", ["[]", '{"version": 9, "tools": {}}', '{"version": 1, "tools": {"a": 3}}', "{"])
def test_pins_that_cannot_be_read_are_told(one: CommandLine, content: str) -> None:
    (one.folder / "packetgate.pins.json").write_text(content)
    done = one.run("proxy", "--check")
    assert done.status == 2
    assert "packetgate.pins.json" in done.err


def test_pins_that_are_asked_for_must_be_there(one: CommandLine, tmp_path: Path) -> None:
    done = one.run("proxy", "--check", "--pins", "elsewhere.json")
    assert done.status == 2
    assert "--pin" in done.err
