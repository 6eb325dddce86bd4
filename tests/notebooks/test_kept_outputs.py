"""The stored outputs of the notebooks, which readers see without running the notebooks."""

import re
from pathlib import Path

import nbformat
import pytest

from benchmarks.gate.runs import read_runs
from notebooks.run import FOLDER, METADATA, cleaned, kinds, texts, varying

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PICTURES = {
    "01_packet_journey": [],
    "02_your_models_and_servers": ["image/png"],
    "03_trust_the_gate": ["image/png", "image/png", "image/png"],
    "04_a_proxy_for_any_agent": [],
}


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_the_notebooks_are_complete():
    assert [path.stem for path in NOTEBOOKS] == list(PICTURES)


def test_cells_ran_once_from_top_to_bottom_without_errors(path: Path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert {output.name for output in outputs if output.output_type == "stream"} <= {"stdout"}


def test_most_cells_have_output_and_the_pictures_are_stored(path: Path):
    notebook = nbformat.read(path, as_version=4)
    shown = [kinds(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert shown.count("nothing") <= 2, shown
    assert re.findall(r"image/[a-z+]*(?=\+text|$)", "\n".join(shown), re.MULTILINE) == PICTURES[path.stem]


def test_a_notebook_contains_nothing_that_differs_between_machines_and_runs(path: Path):
    notebook = nbformat.read(path, as_version=4)
    assert varying(notebook) == []
    assert notebook.metadata == METADATA
    before = nbformat.writes(notebook)
    assert nbformat.writes(cleaned(notebook)) == before


def test_the_text_is_short_and_the_links_work(path: Path):
    notebook = nbformat.read(path, as_version=4)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert texts[0].startswith("# ")
    assert sum(len(text.split()) for text in texts) < 600
    for target in re.findall(r"\]\(([^)]+)\)", "\n".join(texts)):
        assert (FOLDER / target).is_file(), target


def test_the_numbers_about_the_gate_match_the_recorded_runs():
    verdict = nbformat.read(FOLDER / "03_trust_the_gate.ipynb", as_version=4).cells[0].source
    runs = [run for run in read_runs(FOLDER / "data" / "gate_runs.jsonl") if run.chosen]
    own = [run for run in runs if run.selector == "packetgate"]
    passed = [run for run in own if run.outcome == "passed"]
    right = sum(run.right for run in passed)
    wrong = [run for run in runs if run.selector == "careless" and not run.right]
    held_back = sum(run.outcome != "passed" for run in wrong)
    others = sum(run.right for run in own) - right
    figures = [held_back, len(wrong), len(own), len(passed), right, others]
    assert re.findall(r"\d+(?:\.\d+)?", verdict.split("\n\n")[1]) == [str(one) for one in figures]


def test_in_the_second_notebook_a_model_selects_reviews_and_answers():
    notebook = nbformat.read(FOLDER / "02_your_models_and_servers.ipynb", as_version=4)
    (journey,) = [texts(cell) for cell in notebook.cells if cell.source == "journey(turn.packet)"]
    deciding = re.findall(r"<td[^>]*>(\w+)</td><td[^>]*>model</td>", journey)
    assert deciding == ["select_tool", "review_selection", "select_tool", "respond"]


def test_notebooks_use_the_public_api_and_open_with_a_question():
    used = set()
    for path in NOTEBOOKS:
        code = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        used |= set(re.findall(r"^(?:from|import) (packetgate\.\S+)", "\n".join(code), re.MULTILINE))
        if path.stem[:2] in {"01", "02"}:
            assert re.search(r"create_router\(.*router\.invoke\(", "\n".join(code[:2]), re.DOTALL)
    assert used == {"packetgate.lab.fitting"}  # the calibration error of notebook 03


def test_outputs_are_short(path: Path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert len(re.sub(r"<[^>]*>", "", texts(cell))) < 2_000
