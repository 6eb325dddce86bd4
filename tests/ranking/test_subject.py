"""What a request is about, and how that changes."""

from dataclasses import dataclass

import pytest

from packetgate.ranking.subject import context_shift, subject_of, subject_shift


@dataclass(frozen=True)
class Case:
    request: str
    terms: set[str]
    verbs: set[str]
    outside: bool = False


CASES = [
    Case("List my tasks", {"tasks"}, {"list"}),
    Case("Please show me the latest task details", {"task"}, {"show"}),
    Case("Send a letter and create a task", {"letter", "task"}, {"send", "create"}),
    Case("Search the web for lighthouses", {"web", "lighthouses"}, {"search"}, outside=True),
    Case("What does https://example.com/a say?", {"https", "example", "com", "say"}, set(), outside=True),
    Case("What is in the news?", {"news"}, set(), outside=True),
    Case("Is it a website, or a webbing of sites?", {"website", "webbing", "sites"}, set(), outside=True),
    Case("Order the cobwebs by size", {"order", "cobwebs", "size"}, set()),
    Case("and that?", set(), set()),
    Case("", set(), set()),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.request or "empty")
def test_a_subject_has_terms_verbs_and_reach(case: Case):
    subject = subject_of(case.request)
    assert (subject.terms, subject.verbs, subject.outside) == (case.terms, case.verbs, case.outside)
    assert subject.is_known is bool(case.terms or case.verbs)


@dataclass(frozen=True)
class Shift:
    id: str
    earlier: tuple[str, ...]
    now: tuple[str, ...]
    text: str = ""


SHIFTS = [
    Shift("the same", ("kettle",), ("kettle",)),
    Shift("one word in common", ("kettle", "spout"), ("kettle", "lid")),
    Shift("another form of it", ("painting",), ("paints",)),
    Shift("one category", ("milestone",), ("sprint",)),
    Shift("nothing before", (), ("kettle",)),
    Shift("nothing now", ("kettle",), ()),
    Shift("something else", ("kettle",), ("lighthouse",), "from kettle to lighthouse"),
    Shift("another category", ("tasks",), ("forecast",), "from tasks to forecast"),
    Shift("in a fixed order", ("b", "a"), ("d", "c"), "from a, b to c, d"),
    Shift("at most five words", tuple("gfedcba"), ("z",), "from a, b, c, d, e to z"),
]


@pytest.mark.parametrize("case", SHIFTS, ids=lambda case: case.id)
def test_a_changed_subject_is_described(case: Shift):
    assert subject_shift(case.earlier, case.now) == case.text


def test_a_changed_kind_of_conversation_is_described():
    assert context_shift("general", "general") == ""
    assert context_shift("general", "project") == "from general to project"
