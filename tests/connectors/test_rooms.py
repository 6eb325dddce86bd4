"""Another distribution's `tools` or `models` before ours: one line says where it is."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from support.command_line import COMMAND, CommandLine

from connectors import shadowing, studio

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize("room", ["tools", "models"])
def test_a_foreign_package_is_named_with_the_way_out(cli: CommandLine, room: str) -> None:
    foreign = cli.folder / "lib" / room / "__init__.py"
    foreign.parent.mkdir(parents=True)
    foreign.touch()
    ended = subprocess.run(
        [str(COMMAND), "ask", "hello"],
        cwd=cli.folder,
        env={**cli.environment, "PYTHONPATH": str(cli.folder / "lib")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"packetgate: the package {room!r} that Python finds is {foreign}, not Packetgate's own in ")
    assert "PYTHONPATH" in line


def test_every_room_but_the_one_that_looks_is_looked_for() -> None:
    rooms = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
    assert {*shadowing.ROOMS, "connectors"} == set(rooms)


def test_the_command_serves_what_langgraph_json_serves() -> None:
    written = json.loads((CHECKOUT / "langgraph.json").read_text())
    assert (written["graphs"], written["env"]) == (studio.GRAPHS, studio.ENVIRONMENT)
