"""What a request is about, and how that changes."""

import pytest

from packetgate.ranking.subject import context_shift, subject_of, subject_shift


@pytest.mark.parametrize(
    ("request_", "terms", "verbs", "outside"),
    [
        ("List my tasks", {"tasks"}, {"list"}, False),
        ("Please show me the latest task details", {"task"}, {"show"}, False),
        ("Send a letter and create a task", {"letter", "task"}, {"send", "create"}, False),
        ("Search the web for lighthouses", {"web", "lighthouses"}, {"search"}, True),
        ("What does https://example.com/a say?", {"https", "example", "com", "say"}, set(), True),
        ("What is in the news?", {"news"}, set(), True),
        ("Is it a website, or a webbing of sites?", {"website", "webbing", "sites"}, set(), True),
        ("Order the cobwebs by size", {"order", "cobwebs", "size"}, set(), False),
        ("and that?", set(), set(), False),
        ("", set(), set(), False),
    ],
)
def test_a_subject_has_terms_verbs_and_reach(request_: str, terms: set[str], verbs: set[str], outside: bool):
    subject = subject_of(request_)
    assert (subject.terms, subject.verbs, subject.outside) == (terms, verbs, outside)
    assert subject.is_known is bool(terms or verbs)


@pytest.mark.parametrize(
    ("earlier", "now", "text"),
    [
        (("kettle",), ("kettle",), ""),
        (("kettle", "spout"), ("kettle", "lid"), ""),
        (("painting",), ("paints",), ""),  # another form of a word
        (("milestone",), ("sprint",), ""),  # one category
        ((), ("kettle",), ""),
        (("kettle",), (), ""),
        (("kettle",), ("lighthouse",), "from kettle to lighthouse"),
        (("tasks",), ("forecast",), "from tasks to forecast"),
        (("b", "a"), ("d", "c"), "from a, b to c, d"),
        (tuple("gfedcba"), ("z",), "from a, b, c, d, e to z"),
    ],
)
def test_a_changed_subject_is_described(earlier: tuple[str, ...], now: tuple[str, ...], text: str):
    assert subject_shift(earlier, now) == text


def test_a_changed_kind_of_conversation_is_described():
    assert context_shift("general", "general") == ""
    assert context_shift("general", "project") == "from general to project"
