from dataclasses import dataclass

import pytest

from tools.palette.subject import context_shift, subject_shift


@dataclass(frozen=True)
class Case:
    id: str
    earlier: tuple[str, ...]
    now: tuple[str, ...]
    told: str = ""


CASES = [
    Case("the same", ("kettle",), ("kettle",)),
    Case("one word in common", ("kettle", "spout"), ("kettle", "lid")),
    Case("another form of it", ("painting",), ("paints",)),
    Case("one category", ("milestone",), ("sprint",)),
    Case("nothing before", (), ("kettle",)),
    Case("nothing now", ("kettle",), ()),
    Case("something else", ("kettle",), ("lighthouse",), "from kettle to lighthouse"),
    Case("another category", ("tasks",), ("forecast",), "from tasks to forecast"),
    Case("in a fixed order", ("b", "a"), ("d", "c"), "from a, b to c, d"),
    Case("at most five words", tuple("gfedcba"), ("z",), "from a, b, c, d, e to z"),
    Case("in other letters", ("天気",), ("погода",), "from 天気 to погода"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_subject(case: Case):
    assert subject_shift(case.earlier, case.now) == case.told
    assert subject_shift(frozenset(case.earlier), list(case.now)) == case.told


def test_the_type_of_conversation():
    assert context_shift("general", "general") == ""
    assert context_shift("general", "project") == "from general to project"
