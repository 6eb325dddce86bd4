"""Calls that run without a question, on third-party servers."""

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
def query(sql: str) -> str:
    "{about}"
    with pathlib.Path("ran.txt").open("a") as file:
        file.write(sql)
    return "done"


server.run(show_banner=False)
"""


def serve(cli: CommandLine, about: str, server: str = SERVER, *, trusted: bool = True) -> None:
    (cli.folder / "server.py").write_text(server.replace("{about}", about))
    servers = {"db": {"command": sys.executable, "args": ["server.py"], "trusted": trusted}}
    (cli.folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


@pytest.mark.slow
def test_the_statement_decides_the_risk_of_a_query_tool(cli: CommandLine):
    serve(cli, "Run a read-only SQL query on the database and return its rows.")
    assert cli.run("ask", "--allow-writes", 'Query the database with sql "SELECT name FROM users"').status == 0
    assert (cli.folder / "ran.txt").read_text() == "SELECT name FROM users"
    asked = cli.run("ask", "--allow-writes", 'Query the database with sql "DELETE FROM users"')
    assert asked.status == 3
    assert "its `sql` is `DELETE`" in asked.out
    assert (cli.folder / "ran.txt").read_text() == "SELECT name FROM users"


READ_TOOL = SERVER.replace("def query(sql: str)", "def read_entry(title: str)").replace("sql)", "title)")
LINE = 'tools."db.read_entry".risk = "read"'


@pytest.mark.slow
def test_an_unconfirmed_read_is_asked_about_until_packetgate_toml_confirms_it(cli: CommandLine):
    serve(cli, "Read an entry by its title.", READ_TOOL, trusted=False)
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


@pytest.mark.parametrize("switches", [(), ("--allow-writes",)])
def test_sql_that_writes_never_runs_without_a_question(cli: CommandLine, switches: tuple[str, ...]):
    serve(cli, "Query the database.")
    asked = cli.run("ask", *switches, 'Query the database with sql "DELETE FROM users"')
    assert "db.query" in asked.out
    assert not (cli.folder / "ran.txt").exists()
    assert asked.status == (3 if switches else asked.status)
