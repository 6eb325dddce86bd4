"""The risk of calls by tool, arguments and SQL."""

from typing import Any

import pytest
from mcp_types import Tool, ToolAnnotations

from packetgate.state.routing import Risk
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.risk.call import Judgement, judge_call
from packetgate.tools.risk.sql import looks_like_sql, risk_of_sql, statement_in
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.specs import spec_of

R, W, X = Risk.READ, Risk.WRITE, Risk.EXECUTE
TEXT = {"type": "string"}


def tool(
    name: str, description: str, hint: bool | None = None, *, trusted: bool = False, **parameters: Any
) -> ToolSpec:
    schema = {"type": "object", "properties": parameters}
    annotations = None if hint is None else ToolAnnotations(read_only_hint=hint)
    one = Tool(name=name, description=description, input_schema=schema, annotations=annotations)
    return spec_of("db", one, trusted=trusted)


QUERY = tool("query", "Query the database.", trusted=True, sql=TEXT)
COLUMNS = tool("query", "Query ClickHouse.", hint=True, trusted=True, query=TEXT)
UNTRUSTED_QUERY = tool("read_query", "Query the database.", hint=True, sql=TEXT)
EXECUTE_SQL = tool("execute_sql", "Execute SQL.", sql=TEXT)
TRUSTED = tool("execute_sql", "Execute SQL.", trusted=True, sql=TEXT)
RAISED = tool("query", "Query the database.", hint=False, sql=TEXT)
SAVED = TEXT | {"description": "File to save it to."}
SHOT = tool("get_page_text", "Returns the text of the page.", hint=True, trusted=True, filename=SAVED)
SEARCH = tool("search", "Search notes.", hint=True, trusted=True, query=TEXT)
UNCONFIRMED = tool("search", "Search notes.", query=TEXT)


@pytest.mark.parametrize(
    ("sql", "risk"),
    [
        ("SELECT 1", R),
        ("select name, count(*) from users where x = 'DELETE FROM y' group by name;", R),
        ("WITH a AS (SELECT 1) SELECT * FROM a UNION SELECT 2", R),
        ("EXPLAIN SELECT * FROM t", R),
        ("DELETE FROM users", W),
        ("-- only looking\nDELETE FROM users", W),
        ("INSERT INTO t VALUES (1)", W),
        ("UPDATE t SET a = 1", W),
        ("DROP TABLE t", W),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", W),
        ("SELECT * INTO new FROM t", W),
        ("SELECT * FROM t FOR UPDATE", W),
        ("SELECT 1; DROP TABLE t", W),
        ("EXPLAIN ANALYZE DELETE FROM t", X),
        ("COPY t TO '/tmp/x'", X),
        ("PRAGMA writable_schema = 1", X),
        ("ATTACH DATABASE 'x' AS y", X),
        ("SELECT pg_read_file('/etc/passwd')", X),
        ("SELECT load_extension('x')", X),
        ("SELECT setval('s', 1)", X),
        ("SELECT * FROM read_csv('/etc/passwd')", X),
        ("SELECT * FROM t INTO OUTFILE '/tmp/x'", X),
        ("SELECT 1 /*! ; DROP TABLE t */", X),
        ("SELECT '\\'; DROP TABLE t; --'", X),
        ("VACUUM", X),
        ("CALL f()", X),
        ("DO $$ BEGIN END $$", X),
        ("nonsense of a kind", X),
        ("SELECT 1" + " " * 30_000, X),
        ("", X),
    ],
)
def test_sql_statements_have_a_risk(sql: str, risk: Risk):
    assert risk_of_sql(sql)[0] is risk


@pytest.mark.parametrize(
    ("spec", "params", "risk"),
    [
        (QUERY, {"sql": "SELECT * FROM t"}, R),
        (QUERY, {"sql": "DELETE FROM t"}, W),
        (QUERY, {"sql": "COPY t TO '/tmp/x'"}, X),
        (QUERY, {"sql": ["SELECT 1"]}, X),
        (COLUMNS, {"query": "SELECT count() FROM t"}, R),
        (COLUMNS, {"query": "OPTIMIZE TABLE t FINAL"}, X),
        (QUERY, {}, X),
        (EXECUTE_SQL, {"sql": "SELECT * FROM t"}, X),
        (TRUSTED, {"sql": "SELECT * FROM t"}, R),
        (TRUSTED, {"sql": "DELETE FROM t"}, W),
        (RAISED, {"sql": "SELECT * FROM t"}, X),
        (UNTRUSTED_QUERY, {"sql": "SELECT * FROM t"}, X),
        (UNCONFIRMED, {"query": "what we decided"}, W),
        (SEARCH, {"query": "what we decided"}, R),
        (SEARCH, {"query": "DROP TABLE notes"}, W),
        (SEARCH, {"query": "SELECT a FROM b"}, R),
        (SHOT, {}, R),
        (SHOT, {"filename": ""}, R),
        (SHOT, {"filename": "a.png"}, W),
    ],
)
def test_the_risk_of_a_call_is_the_worse_of_tool_and_arguments(spec: ToolSpec, params: dict[str, Any], risk: Risk):
    judged = judge_call(spec, params)
    assert judged.risk is risk
    assert judged.reasons


def test_arguments_raise_a_declared_read():
    preferences = Preferences.model_validate({"tools": {"db.*": {"risk": "read"}}})
    spec = preferences.apply(UNTRUSTED_QUERY)
    assert judge_call(spec, {"sql": "SELECT 1"}) == Judgement(R, reasons=("packetgate.toml sets this risk",))
    assert judge_call(spec, {"sql": "DELETE FROM t"}).risk is W
    worse = Preferences.model_validate({"tools": {"db.search": {"risk": "execute"}}}).apply(SEARCH)
    assert judge_call(worse, {"query": "x"}).risk is X


def test_a_call_of_an_unconfirmed_read_looks_like_a_read():
    assert judge_call(UNCONFIRMED, {"query": "what we decided"}).apparent_risk is R
    assert judge_call(UNCONFIRMED, {"query": "DROP TABLE notes"}).apparent_risk is W
    assert judge_call(UNTRUSTED_QUERY, {"sql": "SELECT 1"}).apparent_risk is R
    assert judge_call(UNTRUSTED_QUERY, {"sql": "DELETE FROM t"}).apparent_risk is X


@pytest.mark.parametrize(
    ("inner", "lists", "risk"),
    [
        ("x", 5, R),
        ("x", 150, R),
        ({"method": "DELETE"}, 150, W),
        ({"query": "DROP TABLE notes"}, 45, W),
        ("x", 2_000, X),
    ],
)
def test_only_unreadable_depth_raises_the_risk(inner: Any, lists: int, risk: Risk):
    for _ in range(lists):
        inner = {"a": [inner]}
    assert judge_call(SEARCH, {"query": inner}).risk is risk


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [
        ("/* a */ -- b\n (delete from t)", True),
        ("/* a /* b */ c */ delete from t", True),
        ("/* a */ b /* c */ d", False),
        ("/* a -- b */ delete from t\n", True),
        ("/* a -- b */ delete from t\nwhere 1=1", True),
        ("/* -- */ drop table t\n;", True),
        ("/*--*/drop table t;\n", True),
        ("/**/" * 5_000 + "x", False),
        ("/**/" * 4_000 + "delete from t", True),
        ("-- a\n" * 4_000, False),
        ("/*" * 10_000, False),
        ("Delete the table from the notes, please", False),
        ("select a nice one", False),
        ("  /* x */ delete from users", True),
    ],
    ids=lambda value: str(value)[:20],
)
def test_sql_after_many_comments_is_judged(text: str, is_sql: bool):
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
def test_a_statement_in_a_text_is_found(text: str, statement: str | None):
    found = statement_in(text)
    assert (text[slice(*found)] if found else None) == statement
