"""The commands in the `sh` blocks of docs/ run, each page in a separate folder."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.pages import PAGES, ROOT

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
RUN = [page for page in PAGES if "```sh\n" in page.read_text() and page.parent != ROOT]
WAITS = 3
"""Exit status of a command that waits for an answer."""

NOTES = """
import sys

sys.path.insert(0, {support!r})
from plain_server import PlainServer

server = PlainServer("notes")


@server.tool
async def read_note(subject: str) -> str:
    "Read the note about a subject."
    return f"Two {{subject}} are needed."


server.run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "plan.txt").write_text("Leave on Friday at noon.\n")
    if page.stem in {"your-servers", "proxy"}:
        (folder / "notes.py").write_text(NOTES.format(support=str(ROOT / "tests" / "support")))
        entry = {"command": sys.executable, "args": [str(folder / "notes.py")]}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))
    cli = CommandLine(folder, tmp_path / "home")
    for kind, block in re.findall(r"^```(sh|toml)\n(.*?)```", page.read_text(), re.DOTALL | re.MULTILINE):
        if kind == "sh":
            for command in block.splitlines():
                _run(command, cli)
        elif page in TUTORIALS:
            (folder / "packetgate.toml").write_text(block)


def _run(command: str, cli: CommandLine) -> None:
    program, *args = shlex.split(command)
    if program != "packetgate":
        subprocess.run(command, shell=True, cwd=cli.folder, check=True)
        return
    done = cli.run(*args)
    assert done.status == (WAITS if "--allow-writes" in args else 0), f"{command}\n{done.out}{done.err}"


def test_every_shown_file_can_be_parsed() -> None:
    for page in TUTORIALS:
        for kind, block in re.findall(r"^```(json|toml)\n(.*?)```", page.read_text(), re.DOTALL | re.MULTILINE):
            assert json.loads(block) if kind == "json" else tomllib.loads(block), page
