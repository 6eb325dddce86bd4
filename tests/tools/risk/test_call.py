"""What one call would do, by its arguments."""

from dataclasses import replace
from typing import Any

import pytest
from mcp_types import Tool, ToolAnnotations

from packetgate.state.routing import Risk
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.risk.call import Judgement, judge_call
from packetgate.tools.risk.sql import looks_like_sql, risk_of_sql
from packetgate.tools.servers.specs import spec_of
from packetgate.tools.spec.tool_spec import ToolSpec

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
UNTRUSTED_QUERY = tool("query", "Query the database.", hint=True, sql=TEXT)
EXECUTE_SQL = tool("execute_sql", "Execute SQL.", sql=TEXT)
TRUSTED = tool("execute_sql", "Execute SQL.", trusted=True, sql=TEXT)
RAISED = tool("query", "Query the database.", hint=False, sql=TEXT)
SAVED = TEXT | {"description": "File to save it to."}
SHOT = tool("get_page_text", "Returns the text of the page.", hint=True, trusted=True, filename=SAVED)
SEARCH = tool("search", "Search notes.", hint=True, trusted=True, query=TEXT)
UNVOUCHED = tool("search", "Search notes.", query=TEXT)


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
def test_sql_is_what_its_parse_says(sql: str, risk: Risk):
    assert risk_of_sql(sql)[0] is risk


def test_text_that_only_speaks_of_it_is_no_sql():
    assert not looks_like_sql("Delete the table from the notes, please")
    assert not looks_like_sql("select a nice one")
    assert looks_like_sql("  /* x */ delete from users")


@pytest.mark.parametrize(
    ("spec", "params", "risk"),
    [
        (QUERY, {"sql": "SELECT * FROM t"}, R),
        (QUERY, {"sql": "DELETE FROM t"}, W),
        (QUERY, {"sql": "COPY t TO '/tmp/x'"}, X),
        (QUERY, {"sql": ["SELECT 1"]}, X),
        (QUERY, {}, X),
        (EXECUTE_SQL, {"sql": "SELECT * FROM t"}, X),
        (TRUSTED, {"sql": "SELECT * FROM t"}, R),
        (TRUSTED, {"sql": "DELETE FROM t"}, W),
        (RAISED, {"sql": "SELECT * FROM t"}, X),
        (UNTRUSTED_QUERY, {"sql": "SELECT * FROM t"}, X),
        (UNVOUCHED, {"query": "what we decided"}, W),
        (SEARCH, {"query": "what we decided"}, R),
        (SEARCH, {"query": "DROP TABLE notes"}, W),
        (SEARCH, {"query": "SELECT a FROM b"}, R),
        (SHOT, {}, R),
        (SHOT, {"filename": ""}, R),
        (SHOT, {"filename": "a.png"}, W),
    ],
)
def test_a_call_is_the_worse_of_its_tool_and_its_arguments(spec: ToolSpec, params: dict[str, Any], risk: Risk):
    judged = judge_call(spec, params)
    assert judged.risk is risk
    assert judged.why


def test_a_method_and_an_action_that_change_raise_a_reader():
    actions = {"enum": ["get", "delete"]}
    spec = tool("get_dashboard", "Get it.", hint=True, trusted=True, method=TEXT, action=actions, uid=TEXT)
    assert judge_call(spec, {"method": "GET", "action": "get"}).risk is R
    assert judge_call(spec, {"method": "delete"}).why[0] == "its `method` says `delete`"
    assert judge_call(spec, {"action": "delete"}).risk is W


def test_an_address_outside_makes_the_call_open_world_and_one_at_home_does_not():
    assert judge_call(SEARCH, {"query": "https://example.org/x"}).open_world
    assert not judge_call(SEARCH, {"query": "http://localhost:80/x"}).open_world
    assert "points outside: https://example.org/x" in judge_call(SEARCH, {"query": "https://example.org/x"}).why[-1]


def test_the_users_word_is_about_the_tool_and_arguments_raise_a_read():
    said = Preferences.model_validate({"tools": {"db.*": {"risk": "read"}}})
    spec = said.apply(UNTRUSTED_QUERY)
    assert judge_call(spec, {"sql": "SELECT 1"}) == Judgement(R, why=("packetgate.toml says so",))
    assert judge_call(spec, {"sql": "DELETE FROM t"}).risk is W
    worse = Preferences.model_validate({"tools": {"db.search": {"risk": "execute"}}}).apply(SEARCH)
    assert judge_call(worse, {"query": "x"}).risk is X


def test_a_call_looks_like_a_read_where_only_a_word_for_its_tool_is_missing():
    assert judge_call(UNVOUCHED, {"query": "what we decided"}).looks is R
    assert judge_call(UNVOUCHED, {"query": "DROP TABLE notes"}).looks is W
    assert judge_call(UNTRUSTED_QUERY, {"sql": "SELECT 1"}).looks is R
    assert judge_call(UNTRUSTED_QUERY, {"sql": "DELETE FROM t"}).looks is X


def test_what_is_nested_too_deep_is_not_taken_for_a_read():
    value: Any = "x"
    for _ in range(50):
        value = {"a": [value]}
    assert judge_call(replace(SEARCH), {"query": value}).risk is X
