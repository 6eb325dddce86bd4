"""The index of the modules that tests share. `python tests/test_support_index.py` writes it."""

import ast
from pathlib import Path

FOLDER = Path(__file__).with_name("support")
INDEX = FOLDER / "README.md"
HEAD = """\
# What the tests share

Modules that several test files use. `python tests/test_support_index.py` writes this table from their docstrings.

| module | content |
|---|---|
"""


def rows() -> str:
    """Return a row for each module, with the first line of its docstring."""
    about = {path: ast.get_docstring(ast.parse(path.read_text())) or "" for path in sorted(FOLDER.glob("*.py"))}
    assert all(about.values()), [path.name for path, text in about.items() if not text]
    lines = {path: text.splitlines()[0].rstrip(".") for path, text in about.items()}
    return "".join(f"| [`{path.stem}`]({path.name}) | {line} |\n" for path, line in lines.items())


def test_the_index_has_every_module() -> None:
    assert INDEX.read_text() == HEAD + rows(), "out of date: python tests/test_support_index.py"


if __name__ == "__main__":
    INDEX.write_text(HEAD + rows())
