"""Follow-up requests are completed from the previous turn."""

import pytest

from packetgate.reflex.follow_ups import PreviousTurn, complete_request, items_in

FENCE = "```"


def shown(*lines: str) -> str:
    return "\n".join(["some.tool ():", FENCE, *lines, FENCE])


@pytest.mark.parametrize(
    ("before", "request_", "means"),
    [
        ("what is the weather in Lagos?", "and in Quito?", "what is the weather in Quito?"),
        (
            "it is 15:00 in Cairo, how late is it in Lima",
            "And in Oslo?",
            "it is 15:00 in Cairo, how late is it in Oslo",
        ),
        ("convert 8 miles from road to sea", "and to air?", "convert 8 miles from road to air"),
        ("how long is notes/a.md?", "and notes/b.md?", "how long is notes/b.md?"),
        (
            "how many lines are in a.txt when it is sorted?",
            "and in b.txt?",
            "how many lines are in b.txt when it is sorted?",
        ),
        ("what is the weather in Lagos?", "and what is the time?", "and what is the time?"),
        ("what is the weather in Lagos?", "and delete notes/a.md", "and delete notes/a.md"),
        ("", "and in Quito?", "and in Quito?"),
    ],
)
def test_a_follow_up_can_state_only_the_change(before: str, request_: str, means: str):
    assert complete_request(request_, PreviousTurn(before)) == means


@pytest.mark.parametrize(
    ("request_", "means"),
    [
        ("open the second one", "open b.md"),
        ("open the last one please", "open c.md please"),
        ("open the ninth one", "open the ninth one"),
    ],
)
def test_ordinals_refer_to_items_of_the_answer(request_: str, means: str):
    assert complete_request(request_, PreviousTurn("list them", shown("a.md", "b.md", "c.md"))) == means


def test_items_of_an_answer_are_found():
    assert [*items_in(shown("[FILE] a.md", "- b", "2. c"))] == ["a.md", "b", "c"]
    assert [*items_in(shown("2 files in notes:", "notes/a.md  (1 KB, changed today)", "notes/b/  (folder)"))] == [
        "notes/a.md",
        "notes/b",
    ]
    assert [*items_in(shown("1 hit", "", "notes/a.md, lines 1 to 4 (score 2):", "tea"))] == ["notes/a.md"]
    assert [*items_in(shown("[{'name': 'tea', 'id': 2}, {'name': 'cup'}]"))] == ["tea", "cup"]
    assert [*items_in("nothing in a fence")] == []


@pytest.mark.parametrize(
    ("request_", "means"),
    [
        ("now switch to it", "now switch to spring"),
        ("delete it", "delete spring"),
        ("what time is it?", "what time is it?"),
        ("say if it is late", "say if it is late"),
        ("add it to notes/a.md", "add it to notes/a.md"),
    ],
)
def test_references_mean_the_argument_of_the_last_call(request_: str, means: str):
    earlier = PreviousTurn("make a branch called spring", shown("Created"), {"branch_name": "spring", "base": "main"})
    assert complete_request(request_, earlier) == means


def test_the_only_file_in_the_answer_is_meant():
    earlier = PreviousTurn("where is the tea list?", shown("lists/tea.txt"), {"query": "tea list"})
    assert complete_request("open it", earlier) == "open lists/tea.txt"
    assert complete_request("open it", PreviousTurn("find tea", shown("a.txt", "b.txt"), {"query": "x"})) == "open it"
