"""What a request is about, and which tools that speaks for."""

from dataclasses import dataclass

import pytest
from support.tool_specs import a_tool

from tools.catalogue.catalogue import Catalogue
from tools.palette.subject import context_shift, subject_of, subject_shift

OFFICE = Catalogue(
    [
        a_tool("office.list_tasks", "List tasks, newest first."),
        a_tool("office.create_task", "Create a task."),
        a_tool("office.get_project_health", "Show the health of a project."),
        a_tool("mail.send_letter", "Send a letter, such as a reminder of tasks."),
        a_tool("mail.find_stamp", "Find a stamp for a letter."),
    ]
)


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
    Case("Is www.example.com up?", {"www", "example", "com"}, set(), outside=True),
    Case("What is in the news?", {"news"}, set(), outside=True),
    Case("Is it a website, or a webbing of sites?", {"website", "webbing", "sites"}, set(), outside=True),
    Case("Order the cobwebs by size", {"order", "cobwebs", "size"}, set()),
    Case("do something else", {"else"}, set()),
    Case("and that?", set(), set()),
    Case("", set(), set()),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.request or "empty")
def test_what_it_is_about_and_what_is_to_be_done(case: Case):
    subject = subject_of(case.request)
    assert (subject.terms, subject.verbs, subject.outside) == (case.terms, case.verbs, case.outside)


@pytest.mark.parametrize(
    ("request_", "clear"),
    [
        ("list my tasks", True),
        ("project health", True),
        ("the health of the Larkspur project", True),
        ("tasks of the kettle", True),
        ("tasks of the old copper kettle", False),
        ("send a reminder", False),
        ("list everything", False),
        ("xyzzy", False),
        ("", False),
    ],
)
def test_it_is_clear_when_a_tools_name_says_half_of_it(request_: str, clear: bool):
    assert subject_of(request_).is_clear(OFFICE.ranking.rank(request_)) is clear


@pytest.mark.parametrize(
    ("request_", "near"),
    [
        ("list my tasks", {"office.list_tasks", "office.create_task"}),
        ("project health", {"office.get_project_health"}),
        ("find tasks", {"office.list_tasks", "office.create_task", "mail.find_stamp"}),
        ("send a letter", {"mail.send_letter"}),
        ("stamps on letters", {"mail.find_stamp", "mail.send_letter"}),
    ],
)
def test_near_is_what_is_named_after_it_or_after_what_is_to_be_done_otherwise(request_: str, near: set[str]):
    hits = OFFICE.ranking.rank(request_)
    assert {hit.name for hit in subject_of(request_).near(hits)} == near
    assert subject_of(request_).near([]) == []


@dataclass(frozen=True)
class Shift:
    id: str
    earlier: tuple[str, ...]
    now: tuple[str, ...]
    told: str = ""


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
    Shift("in other letters", ("天気",), ("погода",), "from 天気 to погода"),
]


@pytest.mark.parametrize("case", SHIFTS, ids=lambda case: case.id)
def test_how_the_subject_changed(case: Shift):
    assert subject_shift(case.earlier, case.now) == case.told
    assert subject_shift(frozenset(case.earlier), list(case.now)) == case.told


def test_how_the_type_of_conversation_changed():
    assert context_shift("general", "general") == ""
    assert context_shift("general", "project") == "from general to project"
