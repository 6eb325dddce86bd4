"""Execute the notebooks from top to bottom, each in its own folder.

The files are not changed, and each cell must print what is stored. Only pictures, and digits
after a decimal point, may differ. With --keep, the new outputs are stored, unless they contain
something that differs from run to run.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from itertools import groupby, zip_longest
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
VARYING = {
    "a path of one machine": r"(?<![\w./:])/(?:home|root|tmp|var|usr|Users|opt|private)/"
    r"[^\s\"'<&]*|[A-Z]:\\\\[^\s\"'<&]*",
    "an address": r"\b127\.0\.0\.1:\d+|\blocalhost:\d+",
    "a time": r"\b\d\d:\d\d:\d\d\b|\b\d+(?:\.\d+)? m?s\b",
    "an id": r"(?<![\da-f])(?=[a-f]*\d)(?=\d*[a-f])(?:[\da-f]{8}){1,8}(?![\da-f])",
    "a number with more than two decimals": r"(?<![\w.])\d+\.\d{3,}(?![\w.])",
}
"""Patterns of output that differs between machines, runs or processors, by their names."""


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
    settings = {
        name: value for name, value in os.environ.items() if name[:11] != "PACKETGATE_"
    }
    return cleaned(client.execute(env=settings))


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
    """Yield each cell whose output changed; pictures and warnings do not count."""
    for number, (old, new) in enumerate(zip(kept.cells, fresh.cells, strict=True), 1):
        if kinds(old) != kinds(new):
            yield f"cell {number} has {kinds(old)}, but printed {kinds(new)}"
        for was, now in zip_longest(_lines(old), _lines(new), fillvalue=""):
            if was != now:
                yield f"cell {number} has {was[:200]!r}, but printed {now[:200]!r}"
                break


def _lines(cell: NotebookNode) -> list[str]:
    """Return the lines and table cells of a cell's texts, without digits after a point."""
    return re.split(r"\n|<[^>]*>", re.sub(r"(?<=\d\.)\d+", "", texts(cell)))


def kinds(cell: NotebookNode) -> str:
    """Return the kinds of a cell's output: `stdout`, types of displays, or `nothing`."""
    shown = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            shown.append(output.name)
        else:
            shown.append("+".join(sorted(output.get("data", [output.output_type]))))
    without_repeats = [
        kind for kind, _ in groupby(kind for kind in shown if kind != "stderr")
    ]
    return ", ".join(without_repeats) or "nothing"


def texts(cell: NotebookNode) -> str:
    """Return what a cell printed or showed, without warnings, and without a picture's text."""
    shown = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            shown += [output.text] if output.name == "stdout" else []
        elif "image/png" not in output.get("data", {}):
            shown += [text for _, text in sorted(output.get("data", {}).items())]
    return "".join(map(str, shown))


def varying(notebook: NotebookNode) -> list[str]:
    """Return what in the outputs differs between machines, runs or processors."""
    shown = "\n".join(map(texts, notebook.cells))
    return [
        f"{name} is shown: {found}"
        for name, pattern in VARYING.items()
        for found in sorted({match[0] for match in re.finditer(pattern, shown)})
    ]


def run(path: Path, *, keep: bool) -> list[str]:
    """Execute a notebook, with `keep` store its outputs, and return problems."""
    kept = nbformat.read(path, as_version=4)
    try:
        fresh = execute(path)
    except CellExecutionError as error:
        return [str(error)]
    wrong = varying(fresh if keep else kept)
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
    parser.add_argument(
        "--keep", action="store_true", help="store the outputs in the files"
    )
    given = parser.parse_args()
    failed = False
    for path in given.notebooks:
        wrong = run(path, keep=given.keep)
        failed = failed or bool(wrong)
        print(f"{path.name}: {'; '.join(wrong) or 'executed from top to bottom'}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
