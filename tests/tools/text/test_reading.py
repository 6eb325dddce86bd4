"""Small talk, conditions, parts, paths and access in a request."""

import pytest

from packetgate.state.sections import Access
from packetgate.tools.text.reading import access_of, condition_in, is_small_talk, mentions_in, parts_in, talk_in

SMALL_TALK = [
    *("Hello", "hello!", "Hey there", "good evening everyone", "Thank you very much!", "Okay, cool", "Bye"),
    *("How are you?", "How's it going?", "Nice day today", "Yes please", "No thank you", "I'm fine, thanks"),
]
REQUESTS = [
    *("Read README.md", "hello, read a.txt", "thanks for `ls`", "hi https://example.com", "find the notes", "", "42"),
    *("Delete it", "good news about taxes", " ".join(["hello"] * 13), "ok /etc/hosts"),
]


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_is_recognised(text: str):
    assert is_small_talk(text)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("thanks", ["thanks, that was helpful!", "Danke!", "merci beaucoup", "谢谢", "ありがとうございます", "thx"]),
        ("bye", ["bye", "See you later!", "Tschüss", "au revoir", "до свидания"]),
        ("ok", ["ok", "Okay, cool", "got it", "alles klar"]),
        ("help", ["help", "what can you do?", "What tools do you have?", "How do I turn on writes?", "Was kannst du?"]),
        ("about", ["who are you?", "Wer bist du?", "¿Quién eres?", "你是谁\uff1f"]),
        ("greeting", ["Hello", "How are you?", "Nice day today"]),
        ("", ["help me find notes.txt", "thanks for `ls`", "list tools", "who is Ana?", "say bye to Omar", ""]),
    ],
)
def test_small_talk_has_a_kind(kind: str, texts: list[str]):
    assert {text: talk_in(text) for text in texts} == dict.fromkeys(texts, kind)


@pytest.mark.parametrize("text", REQUESTS)
def test_requests_are_not_small_talk(text: str):
    assert not is_small_talk(text)


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
def test_a_request_has_an_access(text: str, access: Access):
    assert access_of(text) is access
