"""Names as other programs list them: accepted by every model provider, unique, and the same every time."""

import re

import pytest

from packetgate.tools.spec.descriptions import listed_name, may_be_of

SAME_LETTERS = [
    ("a__b", "c"),
    ("a", "b__c"),
    ("a_", "b"),
    ("a", "_b"),
    ("a.b", "c"),
    ("a", "b.c"),
    ("a", "b/c"),
    ("a", "b c"),
    ("größe", "c"),
    ("grüße", "c"),
    ("日本", "読む"),
    ("中国", "写入"),
    ("s", "x" * 70),
    ("s", "x" * 71),
    ("s" * 70, "x"),
    ("s" * 70, "y"),
    ("s" * 64, "x" * 64),
    ("s", "\ud800"),
    ("s", ""),
    ("s", "t\n"),
    ("s", "t"),
    ("s", "t_0123abcd"),
]


@pytest.mark.parametrize(
    ("server", "name", "listed"),
    [
        ("git", "git_status", "git__git_status"),
        ("my-files", "read-File_2", "my-files__read-File_2"),
        ("s", "x" * 61, f"s__{'x' * 61}"),
        ("s", "get.a", "s__get_a_ab1f5970"),
    ],
)
def test_a_name_that_fits_stays_readable(server: str, name: str, listed: str) -> None:
    assert listed_name(server, name) == listed


def test_every_name_is_accepted_and_its_own() -> None:
    listed = [listed_name(*one) for one in SAME_LETTERS]
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in listed), listed
    assert len({*listed}) == len(listed)
    assert all(may_be_of(server, name) for (server, _), name in zip(SAME_LETTERS, listed, strict=True))


def test_no_tool_takes_the_place_of_one_whose_name_was_shortened() -> None:
    taken = listed_name("s", "get.a")
    assert listed_name("s", taken.removeprefix("s__")) != taken
