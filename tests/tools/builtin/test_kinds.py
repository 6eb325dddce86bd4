"""Files found by the word that people have for their kind."""

import pytest

from packetgate.tools.builtin.tree import pattern_of, suffixes_of


@pytest.mark.parametrize(
    ("word", "suffixes"),
    [
        ("python", ("py", "pyi")),
        ("Photos", suffixes_of("image")),
        ("csv", ("csv",)),
        ("*.yaml", ("yaml", "yml")),
        ("report", ()),
        ("", ()),
    ],
)
def test_a_word_for_a_kind_says_how_names_end(word: str, suffixes: tuple[str, ...]):
    assert suffixes_of(word) == suffixes


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("python", "{*python*,*.py,*.pyi}"), ("csv", "csv"), ("*.py", "*.py"), ("report", "report"), ("a.py", "a.py")],
)
def test_a_kind_is_found_by_its_endings_or_as_a_part_of_a_name(name: str, pattern: str):
    assert pattern_of(name) == pattern
