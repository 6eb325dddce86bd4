from dataclasses import dataclass

import pytest

from state.routing import Risk
from tools.spec.risk import risk_of
from tools.text.words import words_of

R, W, X = Risk.READ, Risk.WRITE, Risk.EXECUTE


@dataclass(frozen=True)
class Hints:
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None


SILENT, READ_ONLY = Hints(), Hints(read_only_hint=True)
CHANGES, DESTROYS, HARMLESS = Hints(False), Hints(None, True), Hints(None, False)


@pytest.mark.parametrize(
    ("name", "risk"),
    [
        ("read_file", R),
        ("list-directory", R),
        ("getWeather", R),
        ("SEARCH", R),
        ("resolve_library_id", W),
        ("resolve_review_thread", W),
        ("write_file", W),
        ("deleteNote", W),
        ("get_or_create_page", W),
        ("read_and_replace", W),
        ("search_and_delete", W),
        ("listThenRemove", W),
        ("frobnicate", W),
        ("files", W),
        ("reader", W),
        ("", W),
        ("読む", W),
        ("run_query", X),
        ("execute", X),
        ("get_shell", X),
        ("bash", X),
        ("createAndRunScript", X),
    ],
)
def test_the_worst_word_of_a_name_counts(name: str, risk: Risk):
    assert risk_of(name, None, trusted=False) is risk
    assert risk_of(name, None, trusted=True) is risk
    assert risk_of(name, SILENT, trusted=True) is risk
    assert risk_of(name, HARMLESS, trusted=True) is risk


@pytest.mark.parametrize(
    ("name", "hints", "untrusted", "trusted"),
    [
        ("read_file", READ_ONLY, R, R),
        ("write_file", READ_ONLY, W, R),
        ("frobnicate", READ_ONLY, W, R),
        ("run_query", READ_ONLY, X, R),
        ("read_file", CHANGES, W, W),
        ("read_file", DESTROYS, W, W),
        ("write_file", HARMLESS, W, W),
        ("run_query", CHANGES, X, X),
        ("run_query", HARMLESS, X, X),
        ("run_query", DESTROYS, X, X),
    ],
)
def test_hints_raise_the_risk_and_lower_it_only_where_trusted(name: str, hints: Hints, untrusted: Risk, trusted: Risk):
    assert risk_of(name, hints, trusted=False) is untrusted
    assert risk_of(name, hints, trusted=True) is trusted


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("read_textFile2", ["read", "text", "file", "2"]),
        ("HTTPServer.getURL", ["http", "server", "get", "url"]),
        ("list-all--things", ["list", "all", "things"]),
        ("__", []),
    ],
)
def test_identifiers_are_split_into_words(name: str, words: list[str]):
    assert words_of(name) == words
