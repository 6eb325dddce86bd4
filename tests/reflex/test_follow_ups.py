"""Follow-up requests are completed from the previous turn."""

import pytest

from packetgate.reflex.follow_ups import PreviousTurn, complete_request


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
        ("now switch to it", "now switch to spring"),
        ("delete it", "delete spring"),
        ("what time is it?", "what time is it?"),
        ("say if it is late", "say if it is late"),
        ("add it to notes/a.md", "add it to notes/a.md"),
    ],
)
def test_references_mean_the_argument_of_the_last_call(request_: str, means: str):
    earlier = PreviousTurn("make a branch called spring", {"branch_name": "spring", "base": "main"})
    assert complete_request(request_, earlier) == means
