"""Calls that a user types: names, arguments, errors, and rendered calls that parse to the same call."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.packets import FILES, tool

from packetgate.connectors.terminal.chat import COMMANDS
from packetgate.state.errors import RequestError
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.typed_calls import RESERVED, command_names, parse_call, render_call

BOOLEAN, TEXT, OPTION = {"type": "boolean"}, {"type": "string"}, {"enum": ["name", "newest"]}
SHOP = Catalogue(
    [
        *FILES.values(),
        tool("disk.read", "path", path="string", tail="integer"),
        tool("disk.search", "query", query="string", path="string", match_case="boolean"),
        tool("disk.move", "path", "destination", path="string", destination="string"),
        tool("disk.append", "path", "text", path="string", text="string"),
        tool("disk.list", path="string", sort=OPTION),
        tool("disk.sync", "id", id="string", source="string", target="string"),
        tool("git.git_status"),
        tool("git.log", max_count="integer"),
        tool("ticket.create", "title", title="string", labels={"type": "array"}, extra={"type": "object"}, any={}),
        tool("ticket.why"),
    ]
)


@pytest.mark.parametrize(
    ("line", "name", "params"),
    [
        ("/read notes.txt", "disk.read", {"path": "notes.txt"}),
        ("  /DISK.READ 'my notes.txt' tail=3 ", "disk.read", {"path": "my notes.txt", "tail": 3}),
        ("/read my notes.txt", "disk.read", {"path": "my notes.txt"}),
        ("/read_file a.txt", "files.read_file", {"path": "a.txt"}),
        ("/files.read a.txt", "files.read_file", {"path": "a.txt"}),
        ("/directory src", "files.list_directory", {"path": "src"}),
        ("/git.status", "git.git_status", {}),
        ("/git.log 5", "git.log", {"max_count": 5}),
        ("/list", "disk.list", {}),
        ("/list in src sort=newest", "disk.list", {"path": "src", "sort": "newest"}),
        ("/search smtp in src", "disk.search", {"query": "smtp", "path": "src"}),
        ('/search "what is in use"', "disk.search", {"query": "what is in use"}),
        ("/search  two   words match_case=True", "disk.search", {"query": "two   words", "match_case": True}),
        ('/search path=src it\'s "said" [so', "disk.search", {"path": "src", "query": 'it\'s "said" [so'}),
        ("/search how to find 5", "disk.search", {"query": "how to find 5"}),
        ("/move a.txt to b c.txt", "disk.move", {"path": "a.txt", "destination": "b c.txt"}),
        ("/move from a.txt to b.txt", "disk.move", {"path": "a.txt", "destination": "b.txt"}),
        ("/append a.txt buy milk\nand eggs", "disk.append", {"path": "a.txt", "text": "buy milk\nand eggs"}),
        (r'/append a.txt "C:\new \"x\"\n5"', "disk.append", {"path": "a.txt", "text": 'C:\new "x"\n5'}),
        (r"/append a.txt C:\new", "disk.append", {"path": "a.txt", "text": r"C:\new"}),
        ("/append path=a.txt text=", "disk.append", {"path": "a.txt", "text": ""}),
        ('/run_command ["ls", "-l"]', "shell.run_command", {"command": ["ls", "-l"]}),
        (
            '/create 12 labels=["a b", 1] extra={"a": {"b": null}} any=12',
            "ticket.create",
            {"title": "12", "labels": ["a b", 1], "extra": {"a": {"b": None}}, "any": 12},
        ),
        ("/ticket.why", "ticket.why", {}),
    ],
)
def test_a_line_is_one_call(line: str, name: str, params: dict[str, Any]):
    call = parse_call(line, SHOP)
    assert call is not None
    assert (call.tool_name, call.params) == (name, params)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "/",
        "read a.txt",
        "/etc/hosts is what?",
        "/home/x/notes.txt",
        "/tmp is full",
        "/read/a.txt",
        "/raed/a",
        "/why",
    ],
)
def test_other_texts_are_no_calls(line: str):
    assert parse_call(line, SHOP) is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/raed notes.txt", ["Unknown command `/raed`", "`/read`"]),
        ("/umbrellas", ["Unknown command `/umbrellas`", "`/help`"]),
        ("/file a", ["several tools", "/files.read_file", "/files.write_file"]),
        ("/read", ["`path`", "missing", "`/read path=notes.txt`"]),
        ("/read a.txt head=1", ["no parameter `head`", "tail (integer)", "quotes"]),
        ("/read a.txt tail=x", ["`tail`", "integer", "`/read path=a.txt tail=1`"]),
        ("/list sort=size", ["`sort`", "name, newest", "`/list sort=name`"]),
        ("/read path=a.txt path=b.txt", ["`path`", "twice"]),
        ("/git.status now", ["takes no value `now`"]),
        ("/git.log 5 6", ["takes no value `6`", "`/git.log`"]),
        ('/list "src', ["quote of `path`"]),
        ("/append milk to list.txt", ["`to` is ambiguous", "`/append path=notes.txt text=...`"]),
        ("/sync 7 in box", ["`in` may give `source` or `target`"]),
    ],
)
def test_an_error_names_the_parameter_and_a_correct_line(line: str, says: list[str]):
    with pytest.raises(RequestError) as caught:
        parse_call(line, SHOP)
    assert [words for words in says if words not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("name", "params", "line"),
    [
        ("disk.read", {"path": "notes.txt"}, "/read notes.txt"),
        ("disk.read", {"path": "my notes.txt", "tail": 3}, '/read "my notes.txt" tail=3'),
        ("disk.read", {"path": "in"}, '/read "in"'),
        ("files.read_file", {"path": "a=b"}, '/read_file "a=b"'),
        ("disk.append", {"path": "a", "text": "b\n"}, r'/append path=a text="b\n"'),
        ("disk.search", {"path": "src"}, "/search path=src"),
        ("ticket.create", {"title": "5", "any": "5"}, '/create 5 any="5"'),
        ("ticket.why", {}, "/ticket.why"),
    ],
)
def test_a_call_is_rendered_as_a_user_types_it(name: str, params: dict[str, Any], line: str):
    assert render_call(name, params, SHOP) == line


def test_a_tool_that_is_called_like_a_command_keeps_its_full_name():
    assert {name.strip("/") for name in COMMANDS} <= RESERVED
    assert command_names(SHOP)["ticket.why"] == "ticket.why"


NAMES = st.from_regex(r"[a-z$@][a-z_.$@\[\]-]{0,6}", fullmatch=True) | st.sampled_from(["path", "to", "in", "folder"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
WORDS = st.sampled_from(
    ["in", "to", "a b", "true", "null", "5", "1e3", "007", '"', "'", "\\", "\\n", "x=1", "[1]", "{", "-", "a\tb"]
)
KINDS: st.SearchStrategy[tuple[dict[str, Any], Any]] = st.one_of(
    st.tuples(st.just({"type": "string"}), st.text() | WORDS),
    st.tuples(st.just({"type": "integer"}), st.integers(-(2**53), 2**53)),
    st.tuples(st.just({"type": "number"}), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just({"type": "boolean"}), st.booleans()),
    st.tuples(st.just({"enum": ["a", "b c", "1", 1, None]}), st.sampled_from(["a", "b c", "1", 1, None])),
    st.tuples(st.just({"anyOf": [{"type": "string"}, {"type": "null"}]}), st.none() | st.text() | WORDS),
    st.tuples(st.just({"type": ["integer", "string"]}), st.integers(-9, 9) | WORDS),
    st.tuples(st.just({"type": "array"}), st.lists(JSON, max_size=3)),
    st.tuples(st.just({"type": "object"}), st.dictionaries(st.text(), JSON, max_size=3)),
    st.tuples(st.just({}), JSON | WORDS),
)


@given(st.dictionaries(NAMES, st.tuples(KINDS, st.booleans(), st.booleans()), max_size=4))
def test_a_rendered_call_is_read_as_the_same_call(parameters: dict[str, tuple[tuple[dict[str, Any], Any], bool, bool]]):
    schemas = {name: schema for name, ((schema, _), _, _) in parameters.items()}
    required = [name for name, (_, is_required, _) in parameters.items() if is_required]
    spec = tool("box.make")
    spec.input_schema.update(properties=schemas, required=required)
    params = {name: value for name, ((_, value), needed, shown) in parameters.items() if needed or shown}
    catalogue = Catalogue([spec])
    call = parse_call(render_call("box.make", params, catalogue), catalogue)
    assert call is not None
    assert repr(sorted(call.params.items())) == repr(sorted(params.items()))
