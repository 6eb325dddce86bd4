"""Patterns, literally and as a system may read a value."""

from typing import Any

import pytest

from packetgate.tools.policy.patterns import fits, literal_pattern, may_fit

LONG = "x" * 10_000


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("notes/a.txt", "notes/*"),
        ("notes/a.txt", "notes/*.txt"),
        ("notes/deep/a.txt", "notes/**"),
        ("https://api.example.org/v1/x?y=1", "https://api.example.org/**"),
        ("two\nlines", "**"),
        ("a*b", r"a\*b"),
        ("a*b", literal_pattern("a*b")),
        ("a\\b", literal_pattern("a\\b")),
        ("../up", literal_pattern("../up")),
        (5, "5"),
        (True, "true"),
        (["b", "a"], '["b", "a"]'),
        ({"b": 1, "a": 2}, literal_pattern({"a": 2, "b": 1})),
        ("", ""),
        (LONG, "**"),
    ],
)
def test_values_that_fit(value: Any, pattern: str):
    assert fits(value, pattern)
    assert may_fit(value, pattern)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("notes/deep/a.txt", "notes/*"),
        ("notes/../secret.txt", "notes/**"),
        ("notes/%2e%2e/secret.txt", "notes/**"),
        ("notes/%252e%252e/secret.txt", "notes/**"),
        ("notes\\..\\secret.txt", "notes**"),
        ("notes/a.txt\n", "notes/*"),
        ("notes/a\0.txt", "notes/*"),
        ("NOTES/a.txt", "notes/*"),
        ("https://api.example.org.evil.test/x", "https://api.example.org/**"),
        ("ab", r"a\*b"),
        ("xnotes/a", "notes/*"),
        ("notes/ax", "notes/a"),
        ("5", "6"),
        (5, '"5"'),
        ("", "x"),
        (None, ""),
    ],
)
def test_values_that_do_not_fit(value: Any, pattern: str):
    assert not fits(value, pattern)


@pytest.mark.parametrize(
    "value",
    [
        "secret/a.txt",
        "./secret/a.txt",
        "notes/../secret/a.txt",
        "/secret/a.txt",
        "SECRET/a.txt",
        "secret//a.txt",
        "secret\\a.txt",
        "%73ecret/a.txt",
        "secret%2fa.txt",
        "%2573ecret/a.txt",
        "\N{FULLWIDTH LATIN SMALL LETTER S}ecret/a.txt",
    ],
)
def test_every_spelling_of_a_denied_path_is_denied(value: str):
    assert may_fit(value, "secret/*")


def test_other_paths_are_not_denied():
    assert not any(may_fit(value, "secret/*") for value in ["notes/a.txt", "secrets/a.txt", "a/secret", "", 5, None])
