"""Arguments that raise a read, similar ones that do not, and addresses outside."""

from typing import Any

import pytest
from mcp_types import Tool, ToolAnnotations

from packetgate.state.routing import Risk
from packetgate.tools.catalogue.preferences import Preferences
from packetgate.tools.risk.call import judge_call
from packetgate.tools.spec.tool_spec import ToolSpec
from packetgate.toolsets.servers.specs import spec_of

URL = {"url": "https://api.example/items"}
KINDS: dict[str, type] = {"boolean": bool, "integer": int, "string": str, "array": list, "object": dict}

CHANGES: dict[str, dict[str, Any]] = {
    "a method in any case": URL | {"method": " Delete "},
    "a method within": URL | {"request": {"options": {"Method": "pAtCh"}}},
    "a method under another name": URL | {"type": "POST"},
    "a method in a header": URL | {"headers": {"X-HTTP-Method-Override": "PUT"}},
    "one request of several": {"requests": [{"method": "GET", "path": "/a"}, {"method": "DELETE", "path": "/a"}]},
    "a request line": {"endpoint": "POST /_bulk"},
    "a body that is sent": URL | {"form": {"email": "a@b.example"}},
    "an endpoint that deletes": {"path": "/logs/_delete_by_query"},
    "an address that runs": {"url": "javascript:alert(1)"},
    "an action": {"action": "REMOVE", "id": "2"},
    "an action of two words": {"operation": "TerminateInstances"},
    "a step": {"steps": [{"do": "read"}, {"do": "click", "on": "#buy"}]},
    "a mode": {"mode": "commit"},
    "turned off": {"turn": "off"},
    "a switch": {"purge": True},
    "a switch as text": {"markAsRead": " Yes "},
    "a switch as a number": {"autofix": 1},
    "a switch within": {"then": {"archive": True}},
    "no rehearsal": {"dry_run": False},
    "not read only": {"read_only": "false"},
    "a confirmation": {"confirm": True},
    "a replacement": {"pattern": "a", "replace_with": "b"},
    "where to save": {"options": {"save_to": "/tmp/x"}},
    "a subcommand": {"subcommand": "push --force origin main"},
    "a subcommand that nobody knows": {"command": "FLUSHALL"},
    "a command as a list": {"args": ["volume", "prune", "-f"]},
    "an option that deletes": {"args": [".", "-delete"]},
    "an option that writes": {"args": "--output=/tmp/x"},
    "an option in place of a name": {"target": "--output=/tmp/x HEAD"},
    "a second command": {"flags": "-o yaml; rm -rf /"},
    "a command within a path": {"path": "$(touch /tmp/x)"},
    "code": {"expression": "__import__('os').system('id')"},
    "an action that merges": {"operation": "MERGE", "number": 3},
    "an option that deletes, by any name": {"extra": "-delete"},
    "a file that is opened to write": {"mode": "w+"},
    "a request by its name": {"requests": [{"deleteRange": {"from": 1, "to": 9}}]},
    "what is to be added": {"labels_to_add": ["x"]},
    "SQL in a list": {"queries": [{"sql": "SELECT 1"}, {"sql": "ATTACH DATABASE '/tmp/x' AS y"}]},
    "SQL with an effect": {"sql": "SELECT setval('ids', 1)"},
    "a stage that stores": {"pipeline": [{"$facet": {"a": [{"$merge": "b"}]}}]},
    "a stage that stores, as text": {"pipeline": '[{"$match": {}}, {"$out": "x"}]'},
    "a GraphQL mutation": {"document": "# all\nmutation M { close(id: 3) { ok } }"},
    "Cypher": {"statement": "MATCH (a) SET a.x = 1 RETURN a"},
    "Cypher behind a comment": {"statement": "MATCH (a) DETACH/**/DELETE a"},
    "SPARQL": {"query": "PREFIX x: <http://x.example/> DELETE WHERE { ?s ?p ?o }"},
    "Flux": {"query": 'from(bucket: "a") |> to(bucket: "b")'},
}

READS: dict[str, dict[str, Any]] = {
    "a method that reads": URL | {"method": "head"},
    "a header": URL | {"headers": {"Accept": "text/html"}},
    "a search in an index": {"index": "logs", "body": {"query": {"match": {"message": "delete"}}}},
    "words about changes": {"query": "delete user; restart"},
    "a file's name": {"path": "src/remove.py"},
    "what to include": {"include_deleted": True, "followRedirects": True, "unread_only": True},
    "a rehearsal": {"dry_run": True},
    "an order of a list": {"state": "closed", "sort": "-updated", "direction": "DESC"},
    "an action that reads": {"action": "list"},
    "a subcommand that reads": {"args": ["log", "--oneline", "-5"]},
    "a pipeline that reads": {"pipeline": [{"$match": {"a": 1}}, {"$set": {"c": 1}}, {"$sort": {"a": 1}}]},
    "a query": {"document": "query { mutationLog { id } }"},
    "Cypher that reads": {"statement": "MATCH (a:Set) RETURN a.created LIMIT 5"},
    "a metric's query": {"expr": 'rate(http_requests_total{method="POST"}[5m])'},
    "a file that is opened to read": {"mode": "rb"},
    "what an update was": {"last_update": {"gte": "2024-01-01"}},
    "columns to leave out": {"columns_to_exclude": ["a"]},
    "a text": {"text": "Please delete the file; then restart | now", "to": "de"},
}


def reader(params: dict[str, Any]) -> ToolSpec:
    """Return a tool that takes these parameters, without any word on what it does."""
    types = {name: next(kind for kind, of in KINDS.items() if isinstance(value, of)) for name, value in params.items()}
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in types.items()}}
    listed = Tool(name="look_up", description="Look it up.", input_schema=schema)
    listed.annotations = ToolAnnotations(read_only_hint=True)
    return spec_of("any", listed, trusted=True)


def by_word(params: dict[str, Any]) -> ToolSpec:
    """Return the same tool as its user sees it who says that it reads."""
    return Preferences.model_validate({"tools": {"any.look_up": {"risk": "read"}}}).apply(reader(params))


@pytest.mark.parametrize("params", CHANGES.values(), ids=CHANGES)
def test_changing_arguments_raise_a_read(params: dict[str, Any]):
    assert judge_call(reader(params), params).risk is not Risk.READ
    judged = judge_call(by_word(params), params)
    assert judged.risk is not Risk.READ
    assert judged.reasons[0].startswith("it")


@pytest.mark.parametrize("params", READS.values(), ids=READS)
def test_harmless_arguments_do_not_raise_a_read(params: dict[str, Any]):
    assert judge_call(by_word(params), params).risk is Risk.READ


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("url", "https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("text", "see http://example.org for more", "http://example.org"),
        ("HOST", "example.org:8080", "example.org:8080"),
        ("endpoint", "192.0.2.1", "192.0.2.1"),
        ("host", "[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("url", "http://192.0.2.1/x", "http://192.0.2.1/x"),
        ("url", "http://localhost.example.org/", "http://localhost.example.org/"),
        ("url", "http://127.0.0.1@example.org/", "http://127.0.0.1@example.org/"),
        ("url", "http://[::1/", "http://[::1/"),
        ("recipients", ["ann", "bob@example.org"], "bob@example.org"),
        ("request", {"headers": {}, "target": ["ftp://example.org"]}, "ftp://example.org"),
        ("cluster", "mongodb+srv://u:p@db.example.org/x", "mongodb+srv://u:p@db.example.org/x"),
    ],
)
def test_outside_addresses_are_found(name: str, value: Any, found: str):
    assert f"its `{name}` points outside: {found}" in judge_call(reader({name: value}), {name: value}).reasons


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "http://localhost:3000/x"),
        ("url", "http://127.0.0.1/x"),
        ("url", "http://[::1]:8000/"),
        ("uri", "file:///etc/hosts"),
        ("path", "notes.example.md"),
        ("text", "the host is example.org"),
        ("host", "localhost"),
        ("host", "127.0.0.1:80"),
        ("count", 3),
        ("options", {"verbose": True, "none": None}),
        ("url", ""),
    ],
)
def test_local_addresses_are_not_outside(name: str, value: Any):
    assert not any("points outside" in why for why in judge_call(reader({name: value}), {name: value}).reasons)
