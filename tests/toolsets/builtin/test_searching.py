from errno import EMFILE
from pathlib import Path
from unittest.mock import Mock

import pytest

from packetgate.toolsets.builtin import tree
from packetgate.toolsets.builtin.corpus import Corpus
from packetgate.toolsets.builtin.files import Root
from packetgate.toolsets.builtin.tree import UNREADABLE

POEM = "The owl and the pussycat\nwent to sea\nin a beautiful\npea-green boat.\n"


@pytest.fixture
def library(folder):
    (folder / "docs").mkdir()
    (folder / "docs" / "poem.txt").write_text(POEM + "They took some honey.\n" * 20)
    (folder / "docs" / "birds.md").write_text("An Owl hunts at night.\nAn owl sees well.\n")
    (folder / "todo.txt").write_text("feed the owl\n")
    (folder / "owl.bin").write_bytes(b"owl\0")
    return folder


async def test_places_have_path_and_line(succeed, library):
    answer = await succeed("ai.search", query="owl")

    assert answer.splitlines() == [
        "'owl' is in 4 places in 3 files, searching 3 text files of the working folder:",
        "todo.txt:1: feed the owl",
        "docs/birds.md:1: An Owl hunts at night.",
        "docs/birds.md:2: An owl sees well.",
        "docs/poem.txt:1: The owl and the pussycat",
        "[not searched: 1 not text]",
    ]


async def test_a_single_place_is_shown_with_its_passage(succeed, library):
    answer = await succeed("ai.search", query="a beautiful pea-green boat")

    head, passage = answer.split("\n", 1)
    assert head == ("'a beautiful pea-green boat' is in docs/poem.txt, line 3. Lines 1 to 9:")
    assert passage.startswith(POEM)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"query": "Owl", "match_case": True}, [("docs/birds.md", 1)]),
        ({"query": "owl", "path": "docs"}, [("docs/birds.md", 1), ("docs/birds.md", 2), ("docs/poem.txt", 1)]),
        ({"query": "owl", "path": "docs/poem.txt"}, [("docs/poem.txt", 1)]),
        ({"query": "owl", "pattern": "*.md"}, [("docs/birds.md", 1), ("docs/birds.md", 2)]),
        ({"query": "owl", "max_results": 1}, [("todo.txt", 1)]),
        ({"query": "o.l"}, []),
        ({"query": "(owl"}, []),
    ],
    ids=str,
)
async def test_search_arguments_are_applied(call, library, arguments, found):
    result = await call("ai.search", **arguments)

    assert [(place["path"], place["first_line"]) for place in result.structured["places"]] == found


async def test_without_an_exact_match_the_nearest_passages_are_shown(call, library):
    result = await call("ai.search", query="when does an owl hunt", path="docs")

    assert result.output.startswith("NO EXACT MATCH for 'when does an owl hunt' in 2 text files of docs.")
    assert result.structured["nearest"][0]["path"] == "docs/birds.md"
    assert "todo.txt" not in result.output


@pytest.mark.parametrize("query", ["zebra", "???"])
async def test_a_search_without_matches_is_reported(succeed, library, query):
    assert (await succeed("ai.search", query=query)).startswith("NO EXACT MATCH")


async def test_a_blank_query_is_refused(fail, library):
    assert "blank" in await fail("ai.search", query="  ")


async def test_a_file_is_counted(succeed, library):
    assert await succeed("ai.count", path="todo.txt") == "todo.txt: 1 line, 3 words, 13 characters, 13 bytes"


async def test_a_folder_is_counted(call, library):
    result = await call("ai.count")

    assert {name: result.structured[name] for name in ("files", "folders", "lines")} == {
        "files": 4,
        "folders": 1,
        "lines": 27,
    }


async def test_occurrences_are_counted(call, library):
    everywhere = await call("ai.count", text="owl")
    exactly = await call("ai.count", text="Owl", match_case=True, pattern="*.md")

    assert everywhere.structured["matches"] == 4
    assert everywhere.output.startswith("'owl' occurs 4 times in the working folder: 4 files")
    assert everywhere.structured["matches_by_file"]["docs/birds.md"] == 2
    assert exactly.structured["matches"] == 1


async def test_files_that_cannot_be_counted_are_named(fail, library):
    assert "not UTF-8 text" in await fail("ai.count", path="owl.bin")
    assert "Nearest: todo.txt" in await fail("ai.count", path="todoo.txt")


def test_a_file_whose_read_failed_once_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.txt").write_text("apples")
    searched = Corpus(Root(tmp_path))
    with monkeypatch.context() as failing:
        failing.setattr(tree, "read_in_folder", Mock(side_effect=OSError(EMFILE, "too many open files")))
        assert searched.scan().skipped[UNREADABLE] == 1
    assert searched.scan().files == 1
