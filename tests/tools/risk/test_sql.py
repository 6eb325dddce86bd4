"""What begins as SQL, however much stands before it: in time that grows with the text alone."""

import pytest

from tools.risk.sql import looks_like_sql


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
