"""The first quarter of an hour with Packetgate: a clone, the demo, the README, a tutorial, a server and a model.

`pytest -s tests/test_first_quarter.py` prints the transcript with its times.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, Step, steps_of
from support.prompts import call
from support.reader import PULLED, QUESTION, new_reader

RECIPES = ROOT / "docs" / "recipes"


@pytest.mark.slow
def test_the_first_quarter_of_an_hour(tmp_path: Path, tiny_gguf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    (clone / ".venv").symlink_to(ROOT / ".venv")
    with new_reader(tmp_path, tiny_gguf, is_first=True) as (reader, model):
        run = reader.do
        model.script(call("cancel_order", order="A-17"), "Order A-17 is cancelled.")
        made = "+hello"
        run(Step(f"make --old-file .venv/.run --directory {clone} demo", shown=("...", made, "...")))
        assert not (clone / "notes.txt").exists()
        for page in (ROOT / "README.md", ROOT / "docs" / "tutorials" / "first-five-minutes.md"):
            for step in steps_of(page):
                if not step.is_inline and not step.text.startswith(("make", "pip")):
                    run(step)
        for file in ("garden_server.py", "mcp.json"):
            shutil.copy(RECIPES / file, reader.cli.folder)
        run(
            Step(
                "packetgate tools garden",
                shown=("...", "garden.list_beds  read   trusted server  List the flower beds of the garden."),
            )
        )
        run(
            Step(
                "packetgate ask 'Water the bed roses' --allow-writes",
                shown=("...", f"{QUESTION} y", "...", "watered roses", "..."),
            )
        )
        run(
            Step(
                f"packetgate model pull {PULLED}",
                shown=("...", "Qwen3-4B-Q5_K_M.gguf: the checksum (SHA-256) is right", "..."),
            )
        )
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *reader.transcript]))
