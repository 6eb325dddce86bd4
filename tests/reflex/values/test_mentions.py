"""Typed values are found in a request, at any place and in several languages."""

from datetime import datetime

import pytest

from packetgate.reflex.values.dates import amount_in, format_moment, parse_moment
from packetgate.reflex.values.mentions import parse_request
from packetgate.reflex.values.tokens import tokenize

NOW = datetime(2026, 1, 15, 9)


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("Read ./src/a.py, and ../b.py.", "path", ["./src/a.py", "../b.py"]),
        ("this and/or that, e.g. yes/no", "path", []),
        ("读取README.md文件", "path", ["README.md"]),
        ("Open https://example.com/a.html.", "url", ["https://example.com/a.html"]),
        ("mail an ada@x.org, bitte", "email", ["ada@x.org"]),
        ("Write \"hello world\" and 'bye'", "quoted", ["hello world", "bye"]),
        ("„das hier“ und «cela» und “this” 和 “你好”", "quoted", ["das hier", "cela", "this", "你好"]),
        ("Check the sentence: \"It goes on", "quoted", ["It goes on"]),
        ("Run `ls -l`", "code", ["ls -l"]),
        ("version 1.2.3, RM3X9 and task_7", "identifier", ["1.2.3", "RM3X9", "task_7"]),
        ("on March 5, 2024 and 2024-01-01 and next Friday", "date", ["March 5, 2024", "2024-01-01", "next Friday"]),
        ("am 5. März 2024, el 10 de mayo de 2023, 2024年5月3日", "date",
         ["5. März 2024", "10 de mayo de 2023", "2024年5月3日"]),
        ("it may be", "date", []),
        ("at 14:30 and 3pm", "time", ["14:30", "3pm"]),
        ("for 2 hours and 30 minutes", "duration", ["2 hours and 30 minutes"]),
        ("in the University of Vienna with Ada Lovelace", "name", ["University of Vienna", "Ada Lovelace"]),
    ],
)  # fmt: skip
def test_typed_mentions_are_found(text: str, kind: str, found: list[str]):
    assert [span.text for span in parse_request(text).mentions if span.kind == kind] == found


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("$48.70, 5%, 20kg, 10k", [48.7, 5, 20, 10_000]),
        ("lines 10-20 and 800x600", [10, 20, 800, 600]),
        ("twenty five, or twelve of two hundred", [25, 12, 200]),
        ("2.5 million people, three dozen eggs", [2_500_000, 36]),
        ("the first 5 lines", [5]),
        ("version 1.2.3, a1, 2024-01-01, file2.txt, 14:30", []),
        ("三个文件", [3]),
    ],
)
def test_numbers_are_parsed(text: str, numbers: list[float]):
    spans = parse_request(text).mentions
    found = []
    last = 0
    for span in spans:
        if span.number is not None and span.first >= last:
            found.append(span.number)
            last = span.last
    assert found == numbers


def test_offsets_match_the_request():
    text = "Read 'my notes.txt' on October 10, 2021 for New York"
    assert all(span.text in text[span.start : span.end] for span in parse_request(text).spans)


@pytest.mark.parametrize(
    ("said", "now", "day"),
    [
        ("October 10, 2021", None, "2021-10-10"),
        ("5. März 2024", None, "2024-03-05"),
        ("31/12/2023", None, "2023-12-31"),
        ("tomorrow", NOW, "2026-01-16"),
        ("tomorrow", None, None),
        ("in 3 days", NOW, "2026-01-18"),
        ("next Friday", NOW, "2026-01-16"),
    ],
)
def test_dates_and_times_are_parsed(said: str, now: datetime | None, day: str | None):
    moment = parse_moment(said, now)
    assert (moment and format_moment(moment, "YYYY-MM-DD")) == day


@pytest.mark.parametrize(
    ("said", "amount"),
    [("half an hour", (0.5, "hour")), ("2 hours", (2, "hours")), ("30-day", (30, "day")), ("1 day and 2 hours", None)],
)
def test_the_amount_of_a_duration(said: str, amount: tuple[float, str] | None):
    assert amount_in(said) == amount


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["'a ", '"', "“a ", "1-", "a.", "a@a.", "in 1 day ", "5 days and ", "may 5 ", "1:"])
def test_the_tokens_of_long_texts_are_limited(piece: str):
    text = (piece * 100_000)[:100_000]
    assert all(token.start < token.end for token in tokenize(text))
