"""Execute the notebooks from top to bottom, each in its own folder.

The files are not changed, and each cell must have the same kinds of output as before. With
--keep, the new outputs are stored, unless they contain a path of this machine.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

FOLDER = Path(__file__).parent
TIMEOUT_S = 300
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_MACHINE = re.compile(
    r"(?<![\w./:])/(?:home|root|tmp|var|usr|Users|opt|private)/[^\s\"'<&]*|[A-Z]:\\\\[^\s\"'<&]*"
)


def execute(path: Path) -> NotebookNode:
    """Return the notebook with the outputs of a new kernel.

    Raises:
        CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
        extra_arguments=["--log-level=ERROR"],
    )
    return cleaned(client.execute())


def cleaned(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook without metadata that differs between machines and runs."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells, 1):
        cell.metadata, cell.id = nbformat.from_dict({}), f"cell-{number}"
        for output in cell.get("outputs", ()):
            if "metadata" in output:
                output.metadata = nbformat.from_dict({})
    return notebook


def differences(kept: NotebookNode, fresh: NotebookNode) -> Iterator[str]:
    """Yield each cell whose kinds of output changed; warnings do not count."""
    for number, (old, new) in enumerate(zip(kept.cells, fresh.cells, strict=True), 1):
        if kinds(old) != kinds(new):
            yield f"cell {number} has {kinds(old)}, but printed {kinds(new)}"


def kinds(cell: NotebookNode) -> str:
    """Return the kinds of a cell's output: `stdout`, types of displays, or `nothing`."""
    shown = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            shown.append(output.name)
        else:
            shown.append("+".join(sorted(output.get("data", [output.output_type]))))
    without_repeats = [kind for kind, _ in groupby(kind for kind in shown if kind != "stderr")]
    return ", ".join(without_repeats) or "nothing"


def machine_paths(notebook: NotebookNode) -> set[str]:
    """Return the paths of this machine in the outputs."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = [output.get("text", "") for output in outputs]
    for output in outputs:
        shown += [text for kind, text in output.get("data", {}).items() if kind != "image/png"]
    return {found for text in shown for found in _MACHINE.findall(str(text))}


def run(path: Path, *, keep: bool) -> list[str]:
    """Execute a notebook, with `keep` store its outputs, and return problems."""
    kept = nbformat.read(path, as_version=4)
    try:
        fresh = execute(path)
    except CellExecutionError as error:
        return [str(error)]
    paths = sorted(machine_paths(fresh if keep else kept))
    wrong = [f"a path of one machine is shown: {found}" for found in paths]
    if not keep:
        return [*wrong, *differences(kept, fresh)]
    if not wrong:
        nbformat.write(fresh, path)
    return wrong


def main() -> None:
    """Execute the notebooks of the command line and print problems."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "notebooks",
        type=Path,
        nargs="*",
        default=sorted(FOLDER.glob("*.ipynb")),
        help="by default all",
    )
    parser.add_argument("--keep", action="store_true", help="store the outputs in the files")
    given = parser.parse_args()
    failed = False
    for path in given.notebooks:
        wrong = run(path, keep=given.keep)
        failed = failed or bool(wrong)
        print(f"{path.name}: {'; '.join(wrong) or 'executed from top to bottom'}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
