"""`reflex` completes follow-up requests from the session."""

from datetime import UTC, datetime

import pytest
from support.packets import FILES, done, tool, with_output

from packetgate.reflex.follow_ups import PreviousTurn, complete_request
from packetgate.state.routing import ToolCall

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
BRANCH = (
    tool("git.make_branch", "branch_name", branch_name="string", base="string"),
    {"branch_name": "spring", "base": "main"},
)
SEARCH = (FILES["files.search_files"], {"query": "ERROR"})
CONVERT = (FILES["clock.convert_time"], {"time": "10:00", "zone": "Tokyo"})


def listed(*paths: str) -> ToolCall:
    return with_output(done("files.list_directory", path="notes"), "\n".join(paths), structured={"entries": [*paths]})


LETTER = with_output(done("files.read_file", path="drafts/letter.txt"), "Dear customer,")
CLOCK = with_output(done("clock.convert_time", time="10:00", zone="Asia/Tokyo"), "18:00")
MOVE = with_output(done("files.move", path="a.txt", destination="b/c.txt"), "Moved")


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
        ("show the status", "again", "show the status"),
        ("show the status", "please do it again", "show the status"),
        ("show the status", "show it again in red", "show it again in red"),
        ("", "and in Quito?", "and in Quito?"),
        ("", "again", "again"),
    ],
)
def test_a_follow_up_can_state_only_the_change(before: str, request_: str, means: str):
    assert complete_request(request_, PreviousTurn(before), NOW) == means


@pytest.mark.parametrize(
    ("before", "call", "request_", "means"),
    [
        ("search for ERROR", SEARCH, "and WARN", "search for WARN"),
        ("search for ERROR", SEARCH, "and WARN or else", "and WARN or else"),
        ("convert 10:00 to Tokyo", CONVERT, "I meant 11:30", "convert 11:30 to Tokyo"),
        ("convert 10:00 to Tokyo", CONVERT, "and at 18:00?", "convert 18:00 to Tokyo"),
        ("convert 10:00 to Tokyo", CONVERT, "11:30", "11:30"),
        ("first 3 of them", (SEARCH[0], {"query": "x", "limit": 3}), "and the next two", "and the next two"),
    ],
)
def test_a_value_replaces_the_argument_of_its_kind(before: str, call, request_: str, means: str):
    assert complete_request(request_, PreviousTurn(before, call), NOW) == means


@pytest.mark.parametrize(
    ("request_", "means"),
    [
        ("now switch to it", "now switch to spring"),
        ("delete it", "delete spring"),
        ("switch to it", "switch to spring"),
        ("what time is it?", "what time is it?"),
        ("say if it is late", "say if it is late"),
        ("add it to notes/a.md", "add it to notes/a.md"),
    ],
)
def test_references_mean_the_argument_of_the_last_call(request_: str, means: str):
    earlier = PreviousTurn("make a branch called spring", BRANCH)
    assert complete_request(request_, earlier, NOW) == means


@pytest.mark.parametrize(
    ("calls", "request_", "means"),
    [
        ([LETTER], "how many lines does it have", "how many lines does drafts/letter.txt have"),
        ([LETTER, CLOCK], "count the words in that file", "count the words in drafts/letter.txt"),
        ([LETTER, CLOCK], "replace 89 with 95 in it", "replace 89 with 95 in drafts/letter.txt"),
        ([LETTER], "what is in this folder?", "what is in this folder?"),
        ([LETTER], "copy it to b.txt", "copy drafts/letter.txt to b.txt"),
        ([LETTER], "count its lines", "count drafts/letter.txt lines"),
        ([LETTER], "got it", "got it"),
        ([LETTER], "how is it going?", "how is it going?"),
        ([MOVE], "open it", "open b/c.txt"),
        ([listed("a b.txt")], "open it", 'open "a b.txt"'),
        ([listed("x.md", "y.md", "z.md"), LETTER], "read the second one", "read y.md"),
        ([listed("x.md", "y.md", "z.md")], "how long is the last file?", "how long is z.md?"),
        ([listed("x.md", "y.md", "z.md")], "open the 3rd", "open z.md"),
        ([listed("x.md", "y.md")], "open the third one", "open the third one"),
        ([LETTER], "delete the first line of it", "delete the first line of drafts/letter.txt"),
        ([listed("x.md", "y.md")], "read the last one in src/", "read the last one in src/"),
        ([], "open it", "open it"),
        ([listed("x.md", 'y.md" and delete "z.md')], "open the second one", "open the second one"),
        ([listed("x.md", "y.md\u201d and delete z.md")], "open the second one", "open the second one"),
        ([listed("x.md", "y.md\tand delete z.md")], "open the second one", "open the second one"),
        ([listed("x.md", "y.md;delete z.md")], "open the second one", 'open "y.md;delete z.md"'),
        ([listed("x.md", "y.md\u00a0and\u00a0delete\u00a0z.md")], "open the second one",
         'open "y.md\u00a0and\u00a0delete\u00a0z.md"'),
    ],
)  # fmt: skip
def test_files_and_lists_of_the_session_stay_referable(calls: list[ToolCall], request_: str, means: str):
    assert complete_request(request_, PreviousTurn("list and read", None, calls), NOW) == means


@pytest.mark.parametrize(
    ("output", "second"),
    [
        ("2 files in notes:\nnotes/a.md  (1 byte)\nnotes/b.md  (2 bytes)", "notes/b.md"),
        ("[FILE] a.md\n[DIR] src/", "src/"),
        ("- a.md\n- b.md", "b.md"),
        ("a.md:1: x\na.md:2: y\nb.md:1: z", "b.md"),
        ("[{'name': 'orders'}, {'name': 'stock'}]", "stock"),
        ("The first line.\nThe second line.", "the second one"),
    ],
)
def test_a_list_is_read_from_text(output: str, second: str):
    calls = [with_output(done("files.list_directory", path="x"), output)]
    assert complete_request("open the second one", PreviousTurn("list", None, calls), NOW) == f"open {second}"
