"""Executing notebooks: what is checked, what is kept, and what is told."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from notebooks.run import FOLDER, differences, kinds, machine_paths, run


def write(path: Path, *sources: str) -> Path:
    nbformat.write(new_notebook(cells=[new_markdown_cell("# One"), *map(new_code_cell, sources)]), path)
    return path


def printed(text: str) -> NotebookNode:
    return new_notebook(cells=[new_code_cell(outputs=[new_output("stream", name="stdout", text=text)])])


def test_what_is_kept_is_checked_later_and_the_file_stays_as_it_is(tmp_path: Path):
    path = write(tmp_path / "n.ipynb", "import sys\nprint('warning', file=sys.stderr)", "x = 1\nprint(x)", "x + 1")
    assert run(path, keep=True) == []
    kept = nbformat.read(path, as_version=4)
    assert [kinds(cell) for cell in kept.cells] == ["nothing", "nothing", "stdout", "text/plain"]
    assert [cell.id for cell in kept.cells] == ["cell-1", "cell-2", "cell-3", "cell-4"]
    assert all(cell.metadata == {} for cell in kept.cells)
    text = path.read_text()
    assert run(path, keep=False) == []
    assert path.read_text() == text


def test_outputs_that_are_missing_or_of_another_kind_are_told(tmp_path: Path):
    path = write(tmp_path / "n.ipynb", "print(1)", "2")
    assert run(path, keep=False) == [
        "cell 2 has nothing, but printed stdout",
        "cell 3 has nothing, but printed text/plain",
    ]


def test_it_runs_in_its_own_folder_and_fails_with_the_cell_that_failed(tmp_path: Path):
    (tmp_path / "here.txt").touch()
    path = write(tmp_path / "n.ipynb", "open('here.txt').close()\n1 / 0")
    text = path.read_text()
    done = subprocess.run(
        [sys.executable, FOLDER / "run.py", path, "--keep"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith("n.ipynb: ")
    assert "ZeroDivisionError" in done.stdout
    assert path.read_text() == text


def test_a_path_of_the_machine_is_not_kept(tmp_path: Path):
    path = write(tmp_path / "n.ipynb", "print('/home/' + 'me/model.gguf')")
    text = path.read_text()
    assert run(path, keep=True) == ["a path of one machine is shown: /home/me/model.gguf"]
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("read /tmp/x1/plan.txt now", {"/tmp/x1/plan.txt"}),
        ("'/Users/me/a'", {"/Users/me/a"}),
        ("C:\\\\Users\\\\me", {"C:\\\\Users\\\\me"}),
        ("garden/plan.txt, https://example.org/home/x and a/tmp/b", set()),
    ],
)
def test_paths_of_machines_are_told_from_others(text: str, found: set[str]):
    assert machine_paths(printed(text)) == found


def test_a_warning_more_or_less_is_no_difference():
    kept, fresh = printed("1"), printed("1")
    fresh.cells[0].outputs.insert(0, new_output("stream", name="stderr", text="a font is missing"))
    fresh.cells[0].outputs.append(new_output("stream", name="stdout", text="2"))
    assert list(differences(kept, fresh)) == []
    fresh.cells[0].outputs.append(new_output("display_data", {"image/png": "", "text/plain": ""}))
    assert list(differences(kept, fresh)) == ["cell 1 has stdout, but printed stdout, image/png+text/plain"]
