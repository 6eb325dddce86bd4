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


def judged(
    name: str, description: str, hints: Hints | None = None, *, trusted: bool = False, **schemas: object
) -> Risk:
    schema = {"type": "object", "properties": schemas}
    return risk_of(name, hints, trusted=trusted, description=description, schema=schema)


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("name", "description", "parameters"),
    [
        ("query", "Query the database.", {"sql": TEXT}),
        ("query", "Query.", {"query": TEXT | {"description": "A PostgreSQL query."}}),
        ("query", "Read with Cypher.", {"q": TEXT}),
        ("query", "Query.", {"options": {"properties": {"sqlText": TEXT}}}),
        ("query", "Query.", {"batch": {"type": "array", "items": {"properties": {"statement": TEXT}}}}),
        ("evaluate", "Evaluate.", {"code": TEXT}),
        ("evaluate", "Evaluate JavaScript in the page.", {"function": TEXT}),
        ("calculate", "Calculate.", {"expression": {"type": ["string", "null"]}}),
        ("check", "Check.", {"what": TEXT | {"description": "The shell command to run."}}),
        ("inspect", "Inspect.", {"pythonCode": {}}),
        ("convert", "Convert.", {"path": TEXT, "output_path": TEXT}),
        ("convert", "Convert.", {"input": TEXT, "output": TEXT}),
        ("extract", "Extract.", {"folder": TEXT | {"description": "The folder to save to."}}),
        ("fetch", "Fetch.", {"saveAs": TEXT}),
        ("fetch", "Fetch.", {"into": TEXT | {"description": "Path to write the page to."}}),
        ("select", "Select.", {"expr": True}),
    ],
)
def test_a_tool_that_does_what_an_argument_says_is_not_one_that_reads(
    name: str, description: str, parameters: dict[str, object]
):
    assert judged(name, description, **parameters) is W
    assert judged(name, description, READ_ONLY, **parameters) is W
    assert judged(name, description, READ_ONLY, trusted=True, **parameters) is R


@pytest.mark.parametrize(
    ("name", "description", "parameters"),
    [
        ("search", "Search the web.", {"query": TEXT}),
        ("search_code", "Search code for a pattern.", {"pattern": TEXT | {"description": "A regular expression."}}),
        ("list_tables", "List tables. Use them to run SQL queries.", {"schema": TEXT}),
        ("get_statements", "Get financial statements.", {"statement_type": TEXT}),
        ("get_rate", "Get the rate of a currency.", {"currency_code": TEXT, "output_format": TEXT}),
        ("find_flights", "Find flights.", {"destination": TEXT}),
        ("get_html", "Get a page.", {"removeScripts": {"type": "boolean"}}),
        ("describe_query", "Describe the SQL of a saved query.", {}),
        ("read_file", "Read a file.", {"path": TEXT | {"description": "The path to the file to read."}}),
    ],
)
def test_parameters_that_only_sound_like_it_do_not_raise_the_risk(
    name: str, description: str, parameters: dict[str, object]
):
    assert judged(name, description, **parameters) is R


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
