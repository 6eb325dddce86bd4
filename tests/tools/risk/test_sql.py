"""What begins as SQL, however much stands before it: in time that grows with the text alone."""

import pytest

from packetgate.tools.risk.sql import looks_like_sql, statement_in


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [
        ("/* a */ -- b\n (delete from t)", True),
        ("/* a /* b */ c */ delete from t", True),
        ("/* a */ b /* c */ d", False),
        ("/**/" * 5_000 + "x", False),
        ("/**/" * 4_000 + "delete from t", True),
        ("-- a\n" * 4_000, False),
        ("/*" * 10_000, False),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_statement_is_found_behind_any_number_of_comments(text: str, is_sql: bool):
    assert looks_like_sql(text) is is_sql


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("run SELECT name FROM products ORDER BY stock", "SELECT name FROM products ORDER BY stock"),
        ("pls execute: select count(*) from t where a = 'x, y', thanks!", "select count(*) from t where a = 'x, y'"),
        ("UPDATE t SET a = 1 WHERE b = 'it''s' please, it is wrong", "UPDATE t SET a = 1 WHERE b = 'it''s'"),
        ("create table notes (id integer) and then show it", "create table notes (id integer)"),
        ("select users from the list", None),
        ("update my notes set for tomorrow", None),
        ("with a friend I want to select a film from the catalogue", None),
        ("drop table manners", None),
        ("no SQL at all", None),
    ],
)
def test_a_statement_in_a_text(text: str, statement: str | None):
    found = statement_in(text)
    assert (text[slice(*found)] if found else None) == statement
