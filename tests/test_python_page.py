"""The Python on our pages, as it is written there: each block is a program."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT
from support.prompts import call, review
from support.scripted_openai import ScriptedOpenAI

PAGES = ("README.md", "docs/python.md")


def blocks() -> list[tuple[str, str]]:
    """Return each block with the page and number that name it."""
    found = []
    for page in PAGES:
        parts = (ROOT / page).read_text().split("```python\n")[1:]
        found += [(f"{page} {number}", part.partition("```")[0]) for number, part in enumerate(parts)]
    return found


def test_both_pages_show_python():
    assert {name.split()[0] for name, _ in blocks()} == {*PAGES}


@pytest.mark.parametrize("code", [code for _, code in blocks()], ids=[name for name, _ in blocks()])
def test_it_runs_as_written(code: str, scripted_openai: ScriptedOpenAI, tmp_path: Path):
    turn = [call("functions.late_orders"), review(0.95), "A-17 and B-4 are late."]
    scripted_openai.script(*turn, *turn)
    for name in ("models.py", "tools.py", "graph.py", "state.py"):
        (tmp_path / name).write_text("MINE = 1\n")
    (tmp_path / "program.py").write_text(code)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= {"OPENAI_BASE_URL": scripted_openai.base_url, "OPENAI_API_KEY": "x", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
