"""A tool that looks like a read, on a server that is not trusted."""

import json
import re
import sys

import pytest
from support.command_line import CommandLine

SERVER = """
import pathlib
from fastmcp import FastMCP

server = FastMCP("db")


@server.tool
def read_entry(title: str) -> str:
    "Read an entry by its title."
    with pathlib.Path("ran.txt").open("a") as file:
        file.write(title)
    return "done"


server.run(show_banner=False)
"""
LINE = 'tools."db.read_entry".risk = "read"'


@pytest.mark.slow
def test_an_unconfirmed_read_is_asked_about_until_packetgate_toml_confirms_it(cli: CommandLine):
    (cli.folder / "server.py").write_text(SERVER)
    servers = {"db": {"command": sys.executable, "args": ["server.py"]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    request = ("ask", 'Read the entry with title "May" by db.read_entry')
    for switches in ((), ("--allow-writes",)):
        asked = cli.run(*request, *switches)
        assert asked.status == 3
        assert "looks like a read but nothing confirms that" in " ".join(re.findall(r"\w+", asked.out))
    assert not (cli.folder / "ran.txt").exists()
    doctor = " ".join(cli.run("doctor").out.split())
    assert "look like reads but count as writes, because nothing confirms that they only read: 1 (read_entry)" in doctor
    assert LINE in doctor
    (cli.folder / "packetgate.toml").write_text(f"{LINE}\n")
    cli.run("policy", "--confirm", "packetgate.toml")
    assert "done" in cli.run(*request).out
    assert (cli.folder / "ran.txt").read_text() == "May"
    assert "nothing confirms" not in cli.run("doctor").out
