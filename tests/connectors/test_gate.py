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
    "{about}"
    with pathlib.Path("ran.txt").open("a") as file:
        file.write(sql)
    return "done"


server.run(show_banner=False)
"""


def serve(cli: CommandLine, about: str) -> None:
    (cli.folder / "server.py").write_text(SERVER.replace("{about}", about))
    servers = {"db": {"command": sys.executable, "args": ["server.py"]}}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_of_a_tool_that_only_queries_the_statement_decides(cli: CommandLine):
    serve(cli, "Run a read-only SQL query on the database and return its rows.")
    assert cli.run("ask", "--allow-writes", 'Query the database with sql "SELECT name FROM users"').status == 0
    assert (cli.folder / "ran.txt").read_text() == "SELECT name FROM users"
    asked = cli.run("ask", "--allow-writes", 'Query the database with sql "DELETE FROM users"')
    assert asked.status == 3
    assert "its `sql` is `DELETE`" in asked.out
    assert (cli.folder / "ran.txt").read_text() == "SELECT name FROM users"


@pytest.mark.parametrize("switches", [(), ("--allow-writes",)])
def test_sql_in_a_querys_argument_never_runs_unasked(cli: CommandLine, switches: tuple[str, ...]):
    serve(cli, "Query the database.")
    asked = cli.run("ask", *switches, 'Query the database with sql "DELETE FROM users"')
    assert "db.query" in asked.out
    assert not (cli.folder / "ran.txt").exists()
    assert asked.status == (3 if switches else asked.status)
