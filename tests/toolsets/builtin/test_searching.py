"""`ai.search` and `ai.count`."""

from errno import EMFILE
from pathlib import Path
from unittest.mock import Mock

import pytest

from packetgate.toolsets.builtin import tree
from packetgate.toolsets.builtin.corpus import Corpus
from packetgate.toolsets.builtin.files import Root
from packetgate.toolsets.builtin.tree import UNREADABLE

POEM = "The owl and the pussycat\nwent to sea\nin a beautiful\npea-green boat.\n"
BIRDS = [("docs/birds.md", 1), ("docs/birds.md", 2)]


@pytest.fixture
def library(folder):
    (folder / "docs").mkdir()
    (folder / "docs" / "poem.txt").write_text(POEM + "They took some honey.\n" * 20)
    (folder / "docs" / "birds.md").write_text("An Owl hunts at night.\nAn owl sees well.\n")
    (folder / "todo.txt").write_text("feed the owl\n")
    (folder / "owl.bin").write_bytes(b"owl\0")
    return folder


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"query": "owl"}, [("todo.txt", 1), *BIRDS, ("docs/poem.txt", 1)]),
        ({"query": "Owl", "match_case": True}, BIRDS[:1]),
        ({"query": "owl", "path": "docs"}, [*BIRDS, ("docs/poem.txt", 1)]),
        ({"query": "owl", "path": "docs/poem.txt"}, [("docs/poem.txt", 1)]),
        ({"query": "owl", "pattern": "*.md"}, BIRDS),
        ({"query": "owl", "max_results": 1}, [("todo.txt", 1)]),
        *(({"query": query}, []) for query in ("o.l", "(owl", "zebra", "???")),
    ],
    ids=str,
)
async def test_places_are_found(call, library, arguments, found):
    result = await call("ai.search", **arguments)
    assert [(place["path"], place["first_line"]) for place in result.structured["places"]] == found
    assert result.output.startswith(("No match for ", "No exact match for ")) is not bool(found)


async def test_places_are_shown_as_lines_and_a_single_place_with_its_passage(succeed, library):
    shown = (await succeed("ai.search", query="owl")).splitlines()
    assert shown[:2] == [
        "'owl' is in 4 places in 3 files, searching 3 text files of the working folder:",
        "todo.txt:1: feed the owl",
    ]
    assert shown[-1] == "[not searched: 1 not text]"
    head, passage = (await succeed("ai.search", query="a beautiful pea-green boat")).split("\n", 1)
    assert head == "'a beautiful pea-green boat' is in docs/poem.txt, line 3:"
    assert passage.startswith(POEM)


async def test_without_an_exact_match_the_nearest_passages_are_shown(call, library):
    result = await call("ai.search", query="when does an owl hunt", path="docs")
    head = "No exact match for 'when does an owl hunt' in 2 text files of docs. Nearest passages:"
    assert result.output.startswith(head)
    assert result.structured["nearest"][0]["path"] == "docs/birds.md"
    assert "todo.txt" not in result.output


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("ai.search", {"query": "  "}, "blank"),
        ("ai.count", {"path": "owl.bin"}, "not UTF-8 text"),
        ("ai.count", {"path": "todoo.txt"}, "Nearest: todo.txt"),
    ],
)
async def test_unsearchable_files_and_wrong_arguments_are_refused(fail, library, tool, arguments, says):
    assert says in await fail(tool, **arguments)


async def test_files_folders_and_occurrences_are_counted(call, succeed, library):
    assert await succeed("ai.count", path="todo.txt") == "todo.txt: 1 line, 3 words, 13 characters, 13 bytes"
    assert (await call("ai.count")).structured.items() >= {"files": 4, "folders": 1, "lines": 27}.items()
    everywhere = await call("ai.count", text="owl")
    assert everywhere.structured["matches"] == 4
    assert everywhere.output.startswith("'owl' occurs 4 times in the working folder: 4 files")
    assert everywhere.structured["matches_by_file"]["docs/birds.md"] == 2
    assert (await call("ai.count", text="Owl", match_case=True, pattern="*.md")).structured["matches"] == 1


def test_a_file_whose_read_failed_once_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.txt").write_text("apples")
    searched = Corpus(Root(tmp_path))
    with monkeypatch.context() as failing:
        failing.setattr(tree, "read_bytes", Mock(side_effect=OSError(EMFILE, "too many open files")))
        assert searched.scan().skipped[UNREADABLE] == 1
    assert searched.scan().files == 1
