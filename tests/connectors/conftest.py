"""A folder with a few files, and the command line in it."""

from pathlib import Path

import pytest
from support.command_line import CommandLine


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    """`packetgate` in a folder that holds `plan.txt` and `todo.txt`."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "plan.txt").write_text("The gate opens at seven.\n")
    (folder / "todo.txt").write_text("Buy milk.\n")
    return CommandLine(folder, tmp_path / "home")
