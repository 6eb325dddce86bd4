"""Execution of notebooks: stored outputs, and differences from stored outputs."""

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from notebooks.run import differences, kinds, run, varying


def write(path: Path, *sources: str) -> Path:
    nbformat.write(new_notebook(cells=[new_markdown_cell("# One"), *map(new_code_cell, sources)]), path)
    return path


def printed(text: str) -> NotebookNode:
    return new_notebook(cells=[new_code_cell(outputs=[new_output("stream", name="stdout", text=text)])])


def test_a_check_accepts_stored_outputs_and_does_not_change_the_file(tmp_path: Path):
    path = write(tmp_path / "n.ipynb", "import sys\nprint('warning', file=sys.stderr)", "x = 1\nprint(x)", "x + 1")
    assert run(path, keep=True) == []
    kept = nbformat.read(path, as_version=4)
    assert [kinds(cell) for cell in kept.cells] == ["nothing", "nothing", "stdout", "text/plain"]
    assert [cell.id for cell in kept.cells] == ["cell-1", "cell-2", "cell-3", "cell-4"]
    assert all(cell.metadata == {} for cell in kept.cells)
    text = path.read_text()
    assert run(path, keep=False) == []
    assert path.read_text() == text


def test_outputs_with_a_path_of_the_machine_are_not_stored(tmp_path: Path):
    path = write(tmp_path / "n.ipynb", "print('/home/' + 'me/model.gguf')")
    text = path.read_text()
    assert run(path, keep=True) == ["a path of one machine is shown: /home/me/model.gguf"]
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("read /tmp/x1/plan.txt now", "/tmp/x1/plan.txt"),
        ("'/Users/me/a'", "/Users/me/a"),
        ("C:\\\\Users\\\\me", "C:\\\\Users\\\\me"),
        ("garden/plan.txt, https://example.org/home/x and a/tmp/b", ""),
        ("scripted at http://127.0.0.1:45423/v1", "127.0.0.1:45423"),
        ("<td>3897.7 ms</td>", "3897.7 ms"),
        ("2026-11-27 23:35:18 asked", "23:35:18"),
        ("call 1347eb07", "1347eb07"),
        ("tool_result:17f99750ea344a369bc91911641a28cc", "17f99750ea344a369bc91911641a28cc"),
        ("review <td>0.7909886931354265</td>", "0.7909886931354265"),
        ("confidence 0.97, 12345678 bytes, 1,270 tokens, version 1.2.24, added", ""),
    ],
)
def test_what_differs_between_runs_is_found(text: str, found: str):
    assert [one.partition(": ")[2] for one in varying(printed(text))] == [found] * bool(found)


@pytest.mark.parametrize(
    ("kept", "fresh", "found"),
    [
        ("a\nb", "a\nc", ["cell 1 has 'b', but printed 'c'"]),
        ("a", "a\nb", ["cell 1 has '', but printed 'b'"]),
        ("<td>x</td><td>0.96</td>", "<td>x</td><td>0.95</td>", []),
        ("0.96", "1.96", ["cell 1 has '0.', but printed '1.'"]),
    ],
)
def test_other_texts_are_a_difference_and_other_fractions_are_not(kept: str, fresh: str, found: list[str]):
    assert list(differences(printed(kept), printed(fresh))) == found


def test_additional_warnings_and_other_pictures_are_not_a_difference():
    kept, fresh = printed("1"), printed("1")
    fresh.cells[0].outputs.insert(0, new_output("stream", name="stderr", text="a font is missing"))
    assert list(differences(kept, fresh)) == []
    for notebook, picture in ((kept, "a"), (fresh, "b")):
        notebook.cells[0].outputs.append(new_output("display_data", {"image/png": picture, "text/plain": picture}))
    assert list(differences(kept, fresh)) == []
    kept.cells[0].outputs.pop()
    fresh.cells[0].outputs.append(new_output("display_data", {"image/png": "", "text/plain": ""}))
    assert list(differences(kept, fresh)) == ["cell 1 has stdout, but printed stdout, image/png+text/plain"]
