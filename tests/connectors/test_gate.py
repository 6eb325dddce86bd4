"""What the command lets run unasked, with real servers of others behind it."""

import json
import sys

import pytest
from support.command_line import CommandLine

SERVER = """
import pathlib
from fastmcp import FastMCP

server = FastMCP("db")


@server.tool
def query(sql: str) -> str:
    "Query the database."
    with pathlib.Path("ran.txt").open("a") as file:
        file.write(f"{sql}\\n")
    return "done"


server.run(show_banner=False)
"""


@pytest.mark.parametrize("switches", [(), ("--allow-writes",)])
def test_sql_in_a_querys_argument_never_runs_unasked(cli: CommandLine, switches: tuple[str, ...]):
    (cli.folder / "server.py").write_text(SERVER)
    servers = {"db": {"command": sys.executable, "args": ["server.py"]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    asked = cli.run("ask", *switches, 'Query the database with sql "DELETE FROM users"')
    assert "db.query" in asked.out
    assert not (cli.folder / "ran.txt").exists()
    assert asked.status == (3 if switches else asked.status)
