"""A request is split into steps."""

import pytest

from packetgate.reflex.reading import steps_in


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        ("read a", ["read a"]),
        ("read a, then read b", ["read a", "read b"]),
        ("read a; read b", ["read a", "read b"]),
        ("Do this:\n1. read a\n2. read b", ["Do this:", "read a", "read b"]),
        ("write 'now and then' to a", ["write 'now and then' to a"]),
        ('write "first; then" to a', ['write "first; then" to a']),
        ("", [""]),
    ],
)
def test_a_request_is_split_into_steps(request_: str, steps: list[str]):
    assert steps_in(request_) == steps


@pytest.mark.parametrize(
    "request_",
    [
        *("Don't delete a.txt", "Do not delete a.txt", "never delete a.txt, please", 'Don\'t write "x" to c.txt'),
        *("don\u2019t read a.txt", "Don't delete a.txt and b.txt", "no, don't delete it"),
        *("I don't want you to delete a.txt", "I did not rename a.txt to b.txt", "Let's not delete a.txt"),
        *(
            "You must not touch a.txt",
            "avoid deleting a.txt",
            "there's no need to delete a.txt",
            "Don't you dare do it",
        ),
        "Don't delete a.txt; never rename b.txt",
    ],
)
def test_a_request_that_only_forbids_has_no_steps(request_: str):
    assert steps_in(request_) == []


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        ("Keep a.txt, delete b.txt", ["delete b.txt"]),
        ("Delete a.txt but not b.txt", ["Delete a.txt"]),
        ("Read a.txt, but don't write anything", ["Read a.txt"]),
        ("don't delete anything, I only want to know what is in a/", ["I only want to know what is in a/"]),
        ("Don't delete a.txt, rename it to b.txt", ["rename it to b.txt"]),
    ],
)
def test_forbidden_parts_are_left_out(request_: str, steps: list[str]):
    assert steps_in(request_) == steps


@pytest.mark.parametrize(
    "request_",
    [
        *("Don't forget to delete a.txt", "Do not hesitate to delete a.txt", "Don't just read a.txt, count its words"),
        *("Why don't you read a.txt?", "Can't you read a.txt?", "Find files that do not contain TODO"),
        *("Write 'don't be late' to a.txt", "Add 'milk, not cream' to a.txt", "Write a note: don't forget milk"),
        *("I don't know what is in a.txt, read it", "We do not have a.txt, create it", "Keep a log in a.txt"),
        *("Never mind, read a.txt", "Copy a.txt to b.txt, keep the formatting", "don't"),
    ],
)
def test_other_negations_are_unchanged(request_: str):
    assert steps_in(request_) == [request_]


@pytest.mark.timeout(60)
def test_a_long_message_with_quotations_is_read_once() -> None:
    assert len(steps_in('Write "x" to `new.txt`, ' * 8_000)) == 1
