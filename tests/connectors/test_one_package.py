"""One top-level package: a project's own `models`, `tools`, `graph` or `state` does not conflict with it."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.command_line import COMMAND, CommandLine

from packetgate.connectors import studio

CHECKOUT = Path(__file__).parents[2]
LINKS = ("graph", "nodes", "prompts", "state")


@pytest.mark.slow
def test_a_project_may_have_modules_of_the_same_names(cli: CommandLine) -> None:
    for name in ("models/__init__.py", "tools.py", "graph.py", "state.py"):
        path = cli.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("MINE = 1\n")
    program = "import graph, models, state, tools; from packetgate.graph.building import LAST_STAGE as last"
    program += "; print(graph.MINE, last)"
    for words in ([sys.executable, "-c", program], [str(COMMAND), "ask", "hello"]):
        ended = subprocess.run(
            words,
            cwd=cli.folder,
            env={**cli.environment, "PYTHONPATH": str(cli.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, ""), words
        assert ended.stdout.strip()


def test_one_package_is_shipped_and_imports_neither_the_links_nor_reflex() -> None:
    built = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built["packages"] == ["packetgate"]
    assert {(name, (CHECKOUT / name).readlink()) for name in LINKS} == {
        (name, Path("packetgate") / name) for name in LINKS
    }
    program = "import packetgate.connectors.commands, packetgate.middleware, sys; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    loaded = ended.stdout.split()
    assert not {*LINKS} & {*loaded}
    assert not [name for name in loaded if name.startswith("packetgate.reflex")]


def test_the_command_serves_the_graphs_of_langgraph_json() -> None:
    written = json.loads((CHECKOUT / "langgraph.json").read_text())
    assert (written["graphs"], written["env"]) == (studio.GRAPHS, studio.ENVIRONMENT)
