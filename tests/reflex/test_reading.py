"""Tables of what is read from the words of a request."""

import pytest

from packetgate.reflex.reading import access_of, condition_in, is_small_talk, mentions_in, parts_in, steps_in
from packetgate.state.sections import Access

SMALL_TALK = [
    *("Hello", "hello!", "Hi", "Hey there", "Good morning", "good evening everyone", "Howdy", "Hallo", "Yo"),
    *("Thanks", "Thank you very much!", "ok", "Okay, cool", "Great, thanks", "Bye", "Goodbye and good night"),
    *("How are you?", "How's it going?", "What's up?", "Nice day today", "Sorry", "Yes please", "No thank you", "sure"),
    *("I'm fine, thanks", "Awesome!", "Alright", "Cheers"),
]
REQUESTS = [
    *("Read README.md", "hello, read a.txt", "thanks for `ls`", "hi https://example.com", "find the notes", "", "42"),
    *("Delete it", "good news about taxes", " ".join(["hello"] * 13), "ok /etc/hosts"),
]


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_is_recognised(text: str):
    assert is_small_talk(text)


@pytest.mark.parametrize("text", REQUESTS)
def test_requests_are_not_small_talk(text: str):
    assert not is_small_talk(text)


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        ("read a", ["read a"]),
        ("read a, then read b", ["read a", "read b"]),
        ("read a; read b", ["read a", "read b"]),
        ("Do this:\n1. read a\n2. read b", ["Do this:", "read a", "read b"]),
        ("write 'now and then' to a", ["write 'now and then' to a"]),
        ('write "first; then" to a', ['write "first; then" to a']),
        ("read a and b", ["read a and b"]),
        ("", [""]),
    ],
)
def test_a_request_is_split_into_steps(request_: str, steps: list[str]):
    assert steps_in(request_) == steps


@pytest.mark.parametrize(
    "request_",
    [
        *("Don't delete a.txt", "Do not delete a.txt", "never delete a.txt, please", 'Don\'t write "x" to c.txt'),
        *("Please do not delete a.txt", "don\u2019t read a.txt", "Don't delete a.txt and b.txt", "no, don't delete it"),
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


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Delete a.txt if it is empty", "if"),
        ("Delete all but keep.txt unless I say so", "unless"),
        ("Write 'if' to a.txt", ""),
    ],
)
def test_conditions_are_found(text: str, word: str):
    assert condition_in(text) == word


@pytest.mark.parametrize(
    ("step", "parts"),
    [
        ("read a", ["read a"]),
        ("read a.txt and list src/", ["read a.txt", "list src/"]),
        ("read a.txt and b.txt", ["read a.txt and b.txt"]),
        ("read a and write b and delete c", ["read a", "write b", "delete c"]),
        ("write 'read and write' to a", ["write 'read and write' to a"]),
    ],
)
def test_a_step_is_split_into_parts(step: str, parts: list[str]):
    assert parts_in(step) == parts


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("Read README.md", "paths", ("README.md",)),
        ("Read ./src/a.py, and ../b.py.", "paths", ("./src/a.py", "../b.py")),
        ("Read ~/notes/a.txt", "paths", ("~/notes/a.txt",)),
        ("Read 'my notes.txt' and `src/b.py`", "paths", ("src/b.py",)),
        ("Read a.txt a.txt", "paths", ("a.txt",)),
        ("this and/or that, e.g. yes/no", "paths", ()),
        ("Open https://example.com/a.html.", "paths", ()),
        ("Open https://example.com/a.html.", "urls", ("https://example.com/a.html",)),
        ("Write \"hello world\" and 'bye'", "quoted", ("hello world", "bye")),
        ("It's Ada's dog", "quoted", ()),
        ("Run `ls -l`", "backquoted", ("ls -l",)),
        ("first 5 of 12.5 and -3", "has_value", True),
        ("version 1.2.3, a1, 2024-01-01, file2.txt at 14:30", "has_value", False),
        ("use name = 'two words'", "has_value", True),
        ("open http://x.org/?q=1 and `x=1`", "has_value", False),
    ],
)
def test_paths_urls_and_texts_are_found(text: str, kind: str, found: object):
    assert getattr(mentions_in(text), kind) == found


@pytest.mark.parametrize(
    ("text", "access"),
    [
        *(("Read a.txt", Access.READ), ("Show me the list", Access.READ), ("", Access.READ), ("a.txt", Access.READ)),
        *(("Write a.txt", Access.WRITE), ("Delete a.txt", Access.WRITE), ("Please create a file", Access.WRITE)),
        *(("Run `ls`", Access.EXECUTE), ("Execute the tests", Access.EXECUTE)),
        *(("Read a.txt and delete b.txt", Access.WRITE), ("Write a.txt and run `b`", Access.MIXED)),
        *(("Read how to delete a file", Access.READ), ("Read 'delete everything'", Access.READ)),
    ],
)
def test_the_access_of_a_request(text: str, access: Access):
    assert access_of(text) is access


@pytest.mark.timeout(60)
def test_a_long_message_with_quotations_is_read_once() -> None:
    assert len(steps_in('Write "x" to `new.txt`, ' * 8_000)) == 1
