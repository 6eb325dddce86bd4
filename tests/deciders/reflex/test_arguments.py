"""Filling parameters from a request, by the tool's schema: nothing is made up."""

from typing import Any

import pytest
from support.packets import tool

from deciders.reflex.arguments import fill, fill_each, senses_of

READ = tool("f.read_file", "path", path="string")
MOVE = tool("f.move_file", "source", "destination", source="string", destination="string")
WRITE = tool(
    *("f.write_file", "path", "content"),
    path="string",
    content="string",
    mode={"type": "string", "enum": ["overwrite", "append"]},
)
SEARCH = tool("f.search", "query", query="string", limit="integer")
TEXTS = {"type": "array", "items": {"type": "string"}}
RUN = tool("s.run", "command", command=TEXTS, timeout="number")
SHELL = tool("s.exec", "command", command="string")
MANY = tool("f.read_many", "paths", paths=TEXTS)
TIME = tool(
    "c.convert_time", "time", "source_zone", "target_zone", time="string", source_zone="string", target_zone="string"
)
ADD = tool("m.add", "a", "b", a="number", b="number")
HEAD = tool("f.head", "path", path="string", lines="integer", recursive="boolean")
FETCH = tool("w.fetch", "url", url={"type": "string", "format": "uri"})
FORECAST = tool("w.forecast", "city", city="string", days={"anyOf": [{"type": "integer"}, {"type": "null"}]})
NOTE = tool(
    "n.add_note", "title", "body", title="string", body="string", tags={"type": "array", "items": {"type": "string"}}
)
FLAGS = tool("f.flags", on="boolean", level="integer", ratio="number", names={"type": "array"}, text="string")
SPOTS = tool("g.plot", "points", points={"type": "array", "items": {"type": "number"}})


@pytest.mark.parametrize(
    ("spec", "text", "params"),
    [
        # paths
        (READ, "Read README.md", {"path": "README.md"}),
        (READ, "Read 'src/a.py' please", {"path": "src/a.py"}),
        (READ, "Read `src/a.py`", {"path": "src/a.py"}),
        (MOVE, "Move a.txt to b/c.txt", {"source": "a.txt", "destination": "b/c.txt"}),
        (MOVE, "Move a.txt into archive/.", {"source": "a.txt", "destination": "archive/"}),
        # quoted, and content
        (WRITE, "Write 'hello world' to a.txt", {"path": "a.txt", "content": "hello world"}),
        (WRITE, "Write to a.txt: good morning", {"path": "a.txt", "content": "good morning"}),
        (WRITE, "Create a.txt with the text good morning", {"path": "a.txt", "content": "good morning"}),
        (WRITE, "Create a.txt saying good morning", {"path": "a.txt", "content": "good morning"}),
        # enums
        (WRITE, "Append 'x' to a.txt", {"path": "a.txt", "content": "x", "mode": "append"}),
        (WRITE, "Overwrite a.txt with 'x'", {"path": "a.txt", "content": "x", "mode": "overwrite"}),
        (WRITE, "Replace a.txt with 'x'", {"path": "a.txt", "content": "x", "mode": "overwrite"}),
        # queries
        (SEARCH, "Search for cats and dogs", {"query": "cats and dogs"}),
        (SEARCH, "Find 'big cats'", {"query": "big cats"}),
        (SEARCH, "What does it say about licences?", {"query": "licences"}),
        (SEARCH, "Search for cats, first 5 results", {"limit": 5, "query": "cats, first 5 results"}),
        # commands
        (RUN, "Run `ls -l 'my dir'`", {"command": ["ls", "-l", "my dir"]}),
        (RUN, "Run 'git status'", {"command": ["git", "status"]}),
        (RUN, "Run git status", {"command": ["git", "status"]}),
        (RUN, "Run `it's`", {"command": ["it's"]}),
        (SHELL, "Execute `make all`", {"command": "make all"}),
        (SHELL, "Please run the command make all.", {"command": "make all"}),
        # from and to
        (
            TIME,
            "Convert 14:30 from Europe/Vienna to Asia/Tokyo",
            {"time": "14:30", "source_zone": "Europe/Vienna", "target_zone": "Asia/Tokyo"},
        ),
        # numbers
        (ADD, "Add 2 and 3.5", {"a": 2, "b": 3.5}),
        (ADD, "Add -2 and 3", {"a": -2, "b": 3}),
        (HEAD, "Show the first 10 lines of a.txt", {"path": "a.txt", "lines": 10}),
        (HEAD, "Show a.txt of 2024", {"path": "a.txt"}),
        (HEAD, "Show lines a.txt 1.5", {"path": "a.txt"}),
        # booleans
        (HEAD, "Show a.txt recursive", {"path": "a.txt", "recursive": True}),
        (HEAD, "Show a.txt recursive=no", {"path": "a.txt", "recursive": False}),
        # addresses
        (FETCH, "Fetch https://example.com/a.", {"url": "https://example.com/a"}),
        # plain strings
        (FORECAST, "What is the weather in Vienna?", {"city": "Vienna"}),
        (FORECAST, "Forecast for 'New York'", {"city": "New York"}),
        (FORECAST, "Forecast city=Graz days=3", {"city": "Graz", "days": 3}),
        # arrays
        (MANY, "Read a.txt and b.txt", {"paths": ["a.txt", "b.txt"]}),
        (NOTE, "Add note title=t body='b c' tags=x,y", {"title": "t", "body": "b c", "tags": ["x", "y"]}),
        # key=value
        (FLAGS, "on=yes level=3 ratio=0.5 names=a,b", {"on": True, "level": 3, "ratio": 0.5, "names": ["a", "b"]}),
        (FLAGS, "on=off ratio=2", {"on": False, "ratio": 2.0}),
        (FLAGS, "text=optional", {"text": "optional"}),
        (FLAGS, "nothing of use", {}),
        # what does not fit its type is handed on as written, for validation to refuse
        (FLAGS, "level=high", {"level": "high"}),
    ],
)
def test_filled(spec, text: str, params: dict[str, Any]):
    assert fill(spec, text) == (params, [])


@pytest.mark.parametrize(
    ("spec", "text", "params", "missing"),
    [
        (READ, "Read it", {}, ["path"]),
        (MOVE, "Move a.txt", {"source": "a.txt"}, ["destination"]),
        (WRITE, "Write a.txt", {"path": "a.txt"}, ["content"]),
        (ADD, "Add 2", {"a": 2}, ["b"]),
        (ADD, "Add", {}, ["a", "b"]),
        (FETCH, "Fetch the page", {}, ["url"]),
        (FORECAST, "Weather?", {}, ["city"]),
        (MANY, "Read them", {}, ["paths"]),
        (SPOTS, "Plot 1, 2, 3", {}, ["points"]),
        (RUN, "Do it", {}, ["command"]),
    ],
)
def test_missing(spec, text: str, params: dict[str, Any], missing: list[str]):
    assert fill(spec, text) == (params, missing)


@pytest.mark.parametrize(
    ("spec", "text", "each"),
    [
        (READ, "Read a.txt and b.txt", [{"path": "a.txt"}, {"path": "b.txt"}]),
        (READ, "Read a.txt, b.txt, c.txt", [{"path": "a.txt"}, {"path": "b.txt"}, {"path": "c.txt"}]),
        (READ, "Read a.txt", [{"path": "a.txt"}]),
        (READ, "Read src/a.txt and a.txt", [{"path": "src/a.txt"}, {"path": "a.txt"}]),
        (HEAD, "First 3 lines of a.txt and b.txt", [{"path": "a.txt", "lines": 3}, {"path": "b.txt", "lines": 3}]),
        (MANY, "Read a.txt and b.txt", [{"paths": ["a.txt", "b.txt"]}]),
        (MOVE, "Move a.txt to b.txt", [{"source": "a.txt", "destination": "b.txt"}]),
    ],
)
def test_once_for_each_path(spec, text: str, each: list[dict[str, Any]]):
    assert [params for params, _ in fill_each(spec, text)] == each


@pytest.mark.parametrize(
    "spec",
    [
        tool("x.y", "a"),
        tool("x.y", a={"type": "object"}),
        tool("x.y", a={}),
        tool("x.y", a={"enum": [1, None, True]}),
        tool("x.y", a={"type": []}),
        tool("x.y", a={"type": "array", "items": True}),
        tool("x.y", a={"anyOf": ["rubbish"]}),
    ],
)
def test_odd_schemas_fill_nothing(spec):
    params, missing = fill(spec, "Read a.txt 'b' 5 `c`")
    assert (params, missing) == ({}, [*spec.required])


@pytest.mark.parametrize(
    ("verbs", "senses"),
    [(["show"], ["read", "list"]), (["find"], ["search"]), (["remove"], ["delete"]), (["dance"], []), ([], [])],
)
def test_senses(verbs: list[str], senses: list[str]):
    assert senses_of(verbs) == senses
