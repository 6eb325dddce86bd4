"""The commands in the `sh` blocks of docs/ run, each page in a separate folder, tutorials with only their own files."""

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.pages import PAGES, ROOT
from support.prompts import call
from support.scripted_openai import serve_scripted_openai

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
RUN = [page for page in PAGES if "```sh\n" in page.read_text() and page.parent != ROOT]
WAITS = 3
"""Exit status of a command that waits for an answer."""
ENDINGS = {"python": "py", "json": "json", "toml": "toml"}
"""Ending of the file that a block is saved as; the text before the block names the file."""
STARTS_AFTER = {"proxy": ["your-servers"]}
"""Tutorials that begin with the files of others."""
CHANGES = {"first-five-minutes": {"plan.txt": "Leave on Friday at noon.\nBring two maps\n"}}
"""What a page's commands leave in a file."""
MODEL = ("Hi", "one hundred", call("ai.read", path="plan.txt"), "They leave on Friday.")
"""Answers of the model of the tutorial on Ollama: two that measure its speed, then a turn."""


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    folder, home = tmp_path / "work", tmp_path / "person"
    folder.mkdir()
    home.mkdir()
    cli = CommandLine(folder, tmp_path / "home")
    if page not in TUTORIALS:
        (folder / "plan.txt").write_text("Leave on Friday at noon.\n")
    for name in STARTS_AFTER.get(page.stem, ()):
        for _ in _commands(page.with_stem(name), folder):
            pass
    with serve_scripted_openai() as ollama:
        ollama.models = ["qwen3:4b"]
        ollama.script(*MODEL)
        for command in _commands(page, folder):
            _run(command, cli, HOME=str(home), OLLAMA_HOST=ollama.base_url.removesuffix("/v1"))
        assert page.stem != "ollama" or not ollama.replies
    for name, text in CHANGES.get(page.stem, {}).items():
        assert (folder / name).read_text() == text


def _commands(page: Path, folder: Path) -> Iterator[str]:
    """Yield the commands of a page in order; a tutorial's files are written when the page prints them."""
    text = page.read_text()
    for block in re.finditer(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        kind, code = block.groups()
        if kind == "sh":
            yield from code.splitlines()
        elif page in TUTORIALS and kind in ENDINGS:
            named = re.findall(rf"`([\w.-]+\.{ENDINGS[kind]})`", text[: block.start()])
            (folder / named[-1]).write_text(code)


def _run(command: str, cli: CommandLine, **variables: str) -> None:
    program, *args = shlex.split(command)
    if program != "packetgate":
        subprocess.run(command, shell=True, cwd=cli.folder, check=True)
        return
    done = cli.run(*args, **variables)
    is_asked = args[0] in {"ask", "undo"} and "--allow-writes" in args
    assert done.status == (WAITS if is_asked else 0), f"{command}\n{done.out}{done.err}"


def test_every_shown_file_can_be_parsed() -> None:
    for page in TUTORIALS:
        for kind, block in re.findall(r"^```(json|toml)\n(.*?)```", page.read_text(), re.DOTALL | re.MULTILINE):
            assert json.loads(block) if kind == "json" else tomllib.loads(block), page
