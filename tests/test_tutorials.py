"""The tutorials hold: their commands run, one after the other, in one folder."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.pages import ROOT

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
RUN = [page for page in TUTORIALS if "```sh\n" in page.read_text()]
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


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_its_commands_run(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    if page.stem in {"your-servers", "proxy"}:
        (folder / "notes.py").write_text(NOTES.format(support=str(ROOT / "tests" / "support")))
        entry = {"command": sys.executable, "args": [str(folder / "notes.py")]}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))
    cli = CommandLine(folder, tmp_path / "home")
    for kind, block in re.findall(r"^```(sh|toml)\n(.*?)```", page.read_text(), re.DOTALL | re.MULTILINE):
        if kind == "toml":
            (folder / "packetgate.toml").write_text(block)
            continue
        for command in block.splitlines():
            program, *args = shlex.split(command)
            if program != "packetgate":
                subprocess.run(command, shell=True, cwd=folder, check=True)
                continue
            done = cli.run(*args)
            assert done.status == (WAITS if "--allow-writes" in args else 0), f"{command}\n{done.out}{done.err}"


def test_every_file_that_they_show_can_be_parsed() -> None:
    for page in TUTORIALS:
        for kind, block in re.findall(r"^```(json|toml)\n(.*?)```", page.read_text(), re.DOTALL | re.MULTILINE):
            assert json.loads(block) if kind == "json" else tomllib.loads(block), page
