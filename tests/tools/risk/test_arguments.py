"""Arguments that raise the risk of a read, similar arguments that do not raise it, and outside addresses."""

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
    "a stage that deletes": {"text": "a=1 b | delete"},
    "a method in an address": {"url": "https://chat.example/api/room.addMember?room=r&member=m"},
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
    "an option that deletes, as a filter": {"filter": "-delete"},
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
    "a management command": {"query": ".rename table a to b"},
    "a pipeline that stores its result": {"search": "host=a | stats count | outputcsv b"},
    "a pipeline that deletes": {"search": "host=a | delete"},
    "a chain that drops": {"query": "db.carts.drop()"},
    "a chain that stores its result": {"query": 'db.carts.aggregate([{"$out": "b"}])'},
    "a measurement that is dropped": {"query": "DROP MEASUREMENT load"},
    "a request that closes": {"path": "/carts/7/close"},
    "a request in other letters": {"url": "https://a.example/carts/7/%43lose"},
    "a request of a script": {"url": "http://camera.example/upgrade.cgi"},
    "a request that ends a session": {"link": "https://a.example/logout"},
    "an action in an address": {"url": "https://a.example/carts?do=empty&id=7"},
    "a switch in an address": {"url": "https://a.example/carts/7?remove"},
    "a method of an interface": {"method": "carts.remove"},
    "an abbreviation": {"ack": "yes"},
    "what is to be removed": {"remove_ids": ["7"]},
    "no glance": {"peek": "false"},
    "not only a plan": {"plan_only": False},
    "a switch that does not hold back": {"dont_remove": False},
    "a mode under another name": {"on_conflict": "overwrite"},
    "where the output goes": {"out": "chart.svg"},
    "where the output goes, within": {"output": {"path": "/tmp/a"}},
    "a program": {"options": {"pager": "sh -c id"}},
    "variables of a program": {"env": {"LD_PRELOAD": "/tmp/a.so"}},
    "turned off, as a state": {"state": "off"},
    "an endpoint in one word": {"path": "/songs/_forcemerge"},
    "an endpoint below another": {"path": "_cache/wipe"},
    "a method in a path": {"path": "/rooms/doEmpty"},
    "a trigger": {"url": "https://flows.example/trigger/open-gate/with/key/k"},
    "a hook": {"url": "https://hooks.flows.example/catch/a"},
    "a request to a device": {"url": "http://camera/reset"},
    "a request with values": {"url": "https://a.example/basket/add?item=3"},
    "an answer to an invitation": {"rsvp": "maybe"},
    "an answer as an order": {"invitation": {"respond": "accept"}},
    "a decision": {"decision": "approve"},
    "flags of mails": {"items": "+FLAGS.SILENT (\\Draft)"},
    "a flag of a mail": {"flags": ["\\Answered"]},
    "SPARQL that loads": {"query": "LOAD SILENT <http://x.example/a.ttl>"},
    "Flux that sends": {"query": 'from(bucket: "a") |> map(fn: (r) => http.post(url: "http://x.example"))'},
    "a setting of SQLite": {"sql": "PRAGMA journal_mode(OFF)"},
    "a second statement that a parser takes for a name": {"sql": "SELECT 1 DELETE FROM carts"},
    "a loop that changes": {"query": "FOR c IN carts UPDATE c WITH {open: false} IN carts"},
    "a change within a query": {"query": "select (insert Cart { size := 3 })"},
    "a second statement": {"query": "SELECT * FROM cart; REMOVE TABLE cart"},
    "a statement in capitals": {"query": "DELETE VERTEX Cart WHERE size = 3"},
    "a change in a named language": {"xquery": "replace value of node //cart[1]/size with 4"},
    "a change behind a comment": {"aql": "FOR c IN carts // '\nREMOVE c IN carts //'"},
    "a chain of a collection": {"query": 'Cart.byId("7")!.delete()'},
    "a chain of a table": {"query": "r.table('carts').get(7).delete()"},
    "Flux of a package": {"query": 'from(bucket: "a") |> mail.wideTo(bucket: "b")'},
    "a method behind a prefix": {"method": "shop_addCart"},
    "a method whose second word changes": {"method": "carts.bulkRemove"},
    "a method that switches off": {"operation": "vmPowerOff"},
    "a mode that takes messages": {"ackMode": "auto_ack"},
    "what is set": {"set_volume": 3},
    "what is not left": {"leave_on_server": False},
    "a second line of a path": {"path": "carts\nDELE a"},
    "a command of a protocol": {"criteria": "ALL\r\nA7 EXPUNGE"},
    "a property that runs": {"url": "jdbc:h2:mem:carts;INIT=RUNSCRIPT FROM 'a.sql'"},
    "a command to a device": {"url": "http://192.0.2.7/cm?cmnd=Dimmer%20Toggle"},
    "a payload for a topic": {"topic": "hall/door", "payload": "OPEN"},
    "a method in a line of headers": URL | {"headers": ["Accept: text/html", "X-HTTP-Method: merge"]},
    "a method in an option": {"command": "curl -s --header 'X-Method-Override: PUT' https://api.example/a"},
    "a method behind a slash": {"methodCalls": [["Cart/set", {"carts": ["7"]}]]},
    "a verb without a sign after it": {"operation": "removemany"},
    "a step of a page": {"steps": [{"type": "click", "on": "#buy"}]},
    "a command in quotes": {"command": "watch -n2 'rm a'"},
    "a relation": {"surrealql": "RELATE cart:7->holds->item:2"},
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
    "words with bars": {"query": "save | delete"},
    "a file type": {"query": ".net core"},
    "a pipeline that reports": {"query": "Logs | where level == 'error' | take 5"},
    "a chain that reads": {"query": "db.carts.find({a: 1}).sort({b: 1})"},
    "a page on changes": {"url": "https://docs.a.example/api/v2/carts/delete"},
    "a page's title": {"url": "https://a.example/2024/how-to-delete-a-cart"},
    "a file named by a verb": {"path": "/srv/app/deploy"},
    "words to search at an address": {"url": "https://a.example/find?q=delete&sort=price"},
    "a state": {"state": "closed"},
    "a glance": {"peek": True, "unread_only": False},
    "a destination": {"destination": "St. Louis"},
    "a host": {"destination": "a.example"},
    "an environment": {"env": "staging"},
    "a page named by a verb": {"url": "https://packages.example/package/erase"},
    "the settings of a hook": {"url": "https://api.a.example/hooks/12"},
    "a folder of hooks": {"path": "/src/hooks/form"},
    "a description of a table": {"sql": "PRAGMA main.table_info('orders')"},
    "descriptions as a table": {"sql": "SELECT name FROM pragma_index_list('orders')"},
    "a state of an invitation": {"response": "accepted"},
    "a text": {"text": "Please delete the file; then restart | now", "to": "de"},
    "what created a table": {"sql": "SHOW CREATE TABLE carts"},
    "SQL of SQL Server": {"sql": "SELECT TOP 3 [Update] FROM [dbo].[Deleted Carts]"},
    "a name in quotes": {"sql": 'SELECT a AS "delete" FROM carts'},
    "a loop that reads": {"query": "FOR c IN carts FILTER c.set == 'REMOVE c IN carts' RETURN c"},
    "strings of a named language": {"xquery": "for $c in /shop/cart where $c/act = 'insert node' return $c"},
    "names of a named language": {"aql": "FOR c IN carts FILTER c.update > 3 && set == 4 RETURN c.remove"},
    "words to search": {"query": "from Rome to Oslo (update weekly)"},
    "words with a semicolon": {"query": "select a colour; remove the stain"},
    "words in capitals": {"query": "SQL UPDATE statement"},
    "a condition": {"filter": {"action": {"$in": ["delete", "update"]}}},
    "a condition on an operation": {"where": {"operation": "remove"}},
    "a comparison": {"operation": {"$eq": "remove"}},
    "a call of a contract": {"method": "eth_call"},
    "a number of blocks": {"method": "eth_blockNumber"},
    "a method about changes": {"method": "carts.listRemoved"},
    "the number of a set": {"set_id": "base1"},
    "lines of an address": {"address": "1 Main Street\nSpringfield"},
    "lines of a text": {"text": "Set the table.\r\nDELETE it.", "files": [{"content": "a\nb"}]},
    "a line of headers": URL | {"headers": ["Accept: text/html", "X-Method: GET"]},
    "a method behind a slash": {"method": "carts/list"},
    "a method that is searched": {"filter": {"method": "DELETE"}},
    "properties of a connection": {"url": "jdbc:sqlserver://db;databaseName=shop;encrypt=true"},
}


def reader(params: dict[str, Any]) -> ToolSpec:
    """Return a tool with these parameters whose description does not state its effect."""
    types = {name: next(kind for kind, of in KINDS.items() if isinstance(value, of)) for name, value in params.items()}
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in types.items()}}
    listed = Tool(name="look_up", description="Look it up.", input_schema=schema)
    listed.annotations = ToolAnnotations(read_only_hint=True)
    return spec_of("any", listed, trusted=True)


def declared_reader(params: dict[str, Any]) -> ToolSpec:
    """Return the same tool, declared as a read in the configuration."""
    return Preferences.model_validate({"tools": {"any.look_up": {"risk": "read"}}}).apply(reader(params))


@pytest.mark.parametrize("params", CHANGES.values(), ids=CHANGES)
def test_changing_arguments_raise_a_read(params: dict[str, Any]):
    assert judge_call(reader(params), params).risk is not Risk.READ
    judged = judge_call(declared_reader(params), params)
    assert judged.risk is not Risk.READ
    assert judged.reasons[0].startswith("it")


@pytest.mark.parametrize("params", READS.values(), ids=READS)
def test_harmless_arguments_do_not_raise_a_read(params: dict[str, Any]):
    assert judge_call(declared_reader(params), params).risk is Risk.READ


@pytest.mark.parametrize(
    ("tool", "arguments", "reads"),
    [
        ("git", ["show", "--stat", "HEAD"], True),
        ("git", ["-C", "/srv", "log", "-n5"], True),
        ("git", ["branch", "-a"], True),
        ("gh", ["api", "user/repos"], True),
        ("gh", ["api", "user/repos", "-f", "name=a"], False),
        ("crontab", ["-l"], True),
        ("find", ". '-delete'", False),
        ("find", ". \\-delete", False),
        ("find", ". -name 'a b'", True),
        ("git", "log '--output=x'", False),
        ("git", "log 'a", False),
        ("aws", "--debug iam --no-paginate untag-user --user-name=b get-x", False),
        ("aws", "ec2 describe-instances --region r", True),
        ("wget", ["https://a.example/x"], False),
        ("wget", ["--spider", "https://a.example/x"], True),
        ("crontab", ["-r"], False),
        ("git", ["branch", "new"], False),
        ("git", ["branch", "-M", "a", "b"], False),
        ("git", ["-c", "core.editor=sh", "log"], False),
        ("git", ["git", "diff", "--output=/tmp/a"], False),
        ("git_cli", "stash list", True),
        ("git_cli", "stash", False),
        ("git_log", ["--oneline"], True),
        ("git_log", ["--output", "a"], False),
        ("look_up", ["/usr/bin/find", ".", "-name", "a*"], True),
        ("look_up", ["find", ".", "-execdir", "sh", ";"], False),
        ("oc", ["-n", "shop", "get", "pods"], True),
        ("kubectl", ["drain", "node-1"], False),
        ("aws", ["ec2", "describe-images", "--owners", "self"], True),
        ("aws", ["s3", "mv", "a", "s3://b"], False),
        ("tar", ["tzf", "a.tgz"], True),
        ("tar", ["xzf", "a.tgz"], False),
        ("sed", ["-n", "3,9p", "a"], True),
        ("sed", ["-n", "3w /tmp/a", "a"], False),
        ("sed", "-n -e '/a b/,$p' -e '2!d' x", True),
        ("sed", "'s,[0-9]+,n,g' x", True),
        ("sed", ["s/[/]/x/w o/", "a"], False),
        ("sed", "'s/a/b/e' x", False),
        ("sed", "-e 1p -e '1e id' x", False),
        ("sed", "-ne 3,9p x", True),
        ("sed", "-n --expression=3,9p x", True),
        ("sed", "-e p -ne '1w o' x", False),
        ("sed", ["-e", "p", "-e1w o", "x"], False),
        ("sed", ["-e", "p", "--expression=1e id", "x"], False),
        ("awk", "-F: '$3 >= 100' x", True),
        ("awk", "'{print > \"o\"}' x", False),
        ("awk", ['{print >> "o"}', "x"], False),
        ("awk", "'BEGIN {system(1)}'", False),
        ("gawk", "-f a.awk x", False),
        ("curl", ["-sI", "https://a.example"], True),
        ("curl", ["-O", "https://a.example/b"], False),
        ("rg", ["--pre", "sh", "a"], False),
        ("curl", ["https://a.example/carts/7/close"], False),
        ("git_cli", "log\nrm -r a", False),
        ("terraform", ["providers", "mirror", "/tmp/a"], False),
        ("xxd", ["-r", "a", "b"], False),
    ],
)
def test_only_known_commands_of_a_program_are_reads(tool: str, arguments: list[str] | str, reads: bool):
    schema = {"type": "object", "properties": {"args": {}}}
    listed = Tool(name=tool, input_schema=schema, annotations=ToolAnnotations(read_only_hint=True))
    assert (judge_call(spec_of("any", listed, trusted=True), {"args": arguments}).risk is Risk.READ) is reads


@pytest.mark.parametrize(
    ("tool", "arguments", "reads"),
    [
        ("git.look", {"argv": ["update-ref", "a", "b"]}, False),
        ("git.look", {"options": ["branch", "--list", "update-*"]}, True),
        ("git.log", {"args": ["main..fix/drop-a", "--stat"]}, True),
        ("git-mcp-server.show", {"args": ["show", "HEAD:src/remove.py"]}, True),
        ("kubectl.get", {"args": "pods -n delete"}, True),
        ("terraform.show", {"args": ["state", "rm", "a"]}, False),
        ("redis.look", {"command": "GET delete:7"}, True),
        ("redis.look", {"args": ["SORT", "a", "STORE", "b"]}, False),
        ("redis.look", {"args": ["EVALSHA", "a", 0]}, False),
        ("systemctl.look", {"line": "restart a"}, False),
        ("gh.look", {"args": ["pr", "list", "--search", "delete in:title"]}, True),
        ("tar.list", {"options": ["-tf", "a.tar", "--checkpoint-action=exec=sh"]}, False),
    ],
)
def test_a_server_may_name_the_program(tool: str, arguments: dict[str, Any], reads: bool):
    server, _, name = tool.partition(".")
    schema = {"type": "object", "properties": {key: {} for key in arguments}}
    listed = Tool(name=name, input_schema=schema, annotations=ToolAnnotations(read_only_hint=True))
    own = Preferences.model_validate({"tools": {tool: {"risk": "read"}}})
    assert (judge_call(own.apply(spec_of(server, listed, trusted=True)), arguments).risk is Risk.READ) is reads


@pytest.mark.parametrize(
    ("tool", "arguments", "reads"),
    [
        ("take_screenshot", {"path": "out/a.png"}, False),
        ("take_screenshot", {"path": "/prices"}, True),
        ("read_screenshot", {"path": "out/a.png"}, True),
    ],
)
def test_a_screenshot_that_is_saved_is_a_change(tool: str, arguments: dict[str, str], reads: bool):
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    listed = Tool(name=tool, input_schema=schema, annotations=ToolAnnotations(read_only_hint=True))
    assert (judge_call(spec_of("any", listed, trusted=True), arguments).risk is Risk.READ) is reads


@pytest.mark.parametrize(
    ("tool", "query", "reads"),
    [
        ("cypher", "MATCH (a:Set {name: 'create'}) RETURN a.remove", True),
        ("cypher", "CALL db.labels()", True),
        ("cypher", "MATCH (a)--(b) SET a.x = 1 RETURN b", False),
        ("cypher", "MATCH (a) // '\nSET a.x = 1 //'", False),
        ("cypher", "MATCH (a) \\u0053ET a.x = 1", False),
        ("cypher", "MATCH (a) WHERE a.n = 'x\\' RETURN 1' SET a.b = ' '", False),
        ("cypher", "MATCH (a) RETURN apoc.create.uuid()", False),
        ("cypher", "CREATE (a) RETURN a", False),
        ("sparql", "PREFIX x: <http://x.example/a#> SELECT ?s WHERE { ?s x:delete ?o }", True),
        ("sparql", "SELECT * { <a//b> ?p ?o } ; DROP ALL", False),
        ("flux", 'from(bucket: "a") |> range(start: -1h) |> mean()', True),
        ("flux", 'from(bucket: "a") |> to(bucket: "b")', False),
        ("splunk_search", "host=a [search host=b | return x] | top x", True),
        ("splunk_search", "host=a | notacommand", False),
        ("splunk_search", "host=a | `macro`", False),
        ("valkey_query", "HGETALL user:7", True),
        ("valkey_query", "EVALSHA 3f 0", False),
        ("kusto_query", ".show tables", True),
        ("kusto_query", ".anything else", False),
        ("kusto_query", "Logs | take 1\n.drop table Logs", False),
    ],
)
def test_in_a_named_language_only_known_statements_are_reads(tool: str, query: str, reads: bool):
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    listed = Tool(name=tool, input_schema=schema, annotations=ToolAnnotations(read_only_hint=True))
    assert (judge_call(spec_of("any", listed, trusted=True), {"query": query}).risk is Risk.READ) is reads


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
