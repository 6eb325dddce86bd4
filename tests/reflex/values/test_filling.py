"""A tool's arguments come from the request, and no value is invented."""

from typing import Any

import pytest
from support.packets import tool

from packetgate.reflex.values.filling import fill_parameters, fill_per_path, value_from_answer

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
MANY = tool("f.read_many", "paths", paths=TEXTS)
TIME = tool(
    "c.convert_time", "time", "source_zone", "target_zone", time="string", source_zone="string", target_zone="string"
)
ADD = tool("m.add", "a", "b", a="number", b="number")
HEAD = tool("f.head", "path", path="string", lines="integer", recursive="boolean")
ZONE = {"type": "string", "description": "IANA time zone, such as Asia/Tokyo."}
CLOCK = tool("c.current_time", "timezone", timezone=ZONE)
ZONES = tool("c.convert_time", "time", "source", "target", time="string", source=ZONE, target=ZONE)
QUERY = tool("d.query", "sql", sql={"type": "string", "description": "The SQL to run."})
ISSUE = tool(
    *("h.get_issue", "owner", "repo", "number"),
    owner={"type": "string", "description": "Account that the repository belongs to."},
    repo={"type": "string", "description": "Name of the repository."},
    number="integer",
)
FETCH = tool("w.fetch", "url", url={"type": "string", "format": "uri"})
FORECAST = tool(
    "w.forecast",
    "city",
    description="The weather of the coming days.",
    city="string",
    days={"anyOf": [{"type": "integer"}, {"type": "null"}]},
)
DATE = {"type": "string", "format": "date"}
RANGE = tool("h.list_bookings", "start_date", "end_date", start_date=DATE, end_date=DATE)
NOTE = tool(
    "n.add_note", "title", "body", title="string", body="string", tags={"type": "array", "items": {"type": "string"}}
)
FLAGS = tool("f.flags", on="boolean", level="integer", ratio="number", names={"type": "array"}, text="string")
MATCH = tool(
    "g.get_winner",
    "teams",
    "date",
    teams={**TEXTS, "description": "The two teams that played."},
    date={"type": "string", "description": "Date of the game, YYYY-MM-DD."},
)
TIMER = tool("t.set_timer", "minutes", minutes={"type": "integer", "description": "How long."})


@pytest.mark.parametrize(
    ("spec", "text", "params"),
    [
        (READ, "Read 'src/a.py' please", {"path": "src/a.py"}),
        (READ, "Read `src/a.py`", {"path": "src/a.py"}),
        (MOVE, "Move a.txt to b/c.txt", {"source": "a.txt", "destination": "b/c.txt"}),
        (WRITE, "Write 'hello world' to a.txt", {"path": "a.txt", "content": "hello world"}),
        (WRITE, "Write to a.txt: good morning", {"path": "a.txt", "content": "good morning"}),
        (WRITE, "Append 'x' to a.txt", {"path": "a.txt", "content": "x", "mode": "append"}),
        (CLOCK, "What time is it in Nairobi?", {"timezone": "Africa/Nairobi"}),
        (ZONES, "Convert 14:30 from UTC to Asia/Dubai", {"time": "14:30", "source": "UTC", "target": "Asia/Dubai"}),
        (QUERY, "run SELECT a, b FROM t WHERE c = 'x y' please", {"sql": "SELECT a, b FROM t WHERE c = 'x y'"}),
        (ISSUE, "show issue 7 of harbor/pilot", {"owner": "harbor", "repo": "pilot", "number": 7}),
        (SEARCH, "Search for cats and dogs", {"query": "cats and dogs"}),
        (RUN, "Run `ls -l 'my dir'`", {"command": ["ls", "-l", "my dir"]}),
        (RUN, "Run git status", {"command": ["git", "status"]}),
        (
            TIME,
            "Convert 14:30 from Europe/Vienna to Asia/Tokyo",
            {"time": "14:30", "source_zone": "Europe/Vienna", "target_zone": "Asia/Tokyo"},
        ),
        (
            RANGE,
            "List the bookings from April 3rd to April 5th 2023",
            {"start_date": "2023-04-03", "end_date": "2023-04-05"},
        ),
        (ADD, "Add 2 and 3.5", {"a": 2, "b": 3.5}),
        (TIMER, "Set a timer for 15 minutes", {"minutes": 15}),
        (HEAD, "Show the first 10 lines of a.txt", {"path": "a.txt", "lines": 10}),
        (HEAD, "Show a.txt recursive=no", {"path": "a.txt", "recursive": False}),
        (FETCH, "Fetch https://example.com/a.", {"url": "https://example.com/a"}),
        (FORECAST, "What is the weather in Vienna?", {"city": "Vienna"}),
        (MANY, "Read a.txt and b.txt", {"paths": ["a.txt", "b.txt"]}),
        (NOTE, "Add note title=t body='b c' tags=x,y", {"title": "t", "body": "b c", "tags": ["x", "y"]}),
        (FLAGS, "on=yes level=3 ratio=0.5 names=a,b", {"on": True, "level": 3, "ratio": 0.5, "names": ["a", "b"]}),
        (FLAGS, "level=high", {}),
        (
            MATCH,
            "Who won the match between Rapid and Sturm on Jan 28, 2021?",
            {"teams": ["Rapid", "Sturm"], "date": "2021-01-28"},
        ),
    ],
)
def test_arguments_are_filled(spec, text: str, params: dict[str, Any]):
    found = fill_parameters(spec, text)
    assert (found.params, found.missing) == (params, ())


@pytest.mark.parametrize(
    ("spec", "text", "params", "missing"),
    [
        (CLOCK, "What time is it in Lemuria?", {}, ["timezone"]),
        (READ, "Read it", {}, ["path"]),
        (MOVE, "Move a.txt", {"source": "a.txt"}, ["destination"]),
        (WRITE, "Write a.txt", {"path": "a.txt"}, ["content"]),
        (ADD, "Add 2", {"a": 2}, ["b"]),
        (TIMER, "Set a timer for 2 hours", {}, ["minutes"]),
    ],
)
def test_required_arguments_without_a_value_are_missing(spec, text: str, params: dict[str, Any], missing: list[str]):
    found = fill_parameters(spec, text)
    assert (found.params, [*found.missing]) == (params, missing)


@pytest.mark.parametrize(
    ("spec", "text", "each"),
    [
        (READ, "Read a.txt and b.txt", [{"path": "a.txt"}, {"path": "b.txt"}]),
        (HEAD, "First 3 lines of a.txt and b.txt", [{"path": "a.txt", "lines": 3}, {"path": "b.txt", "lines": 3}]),
        (MANY, "Read a.txt and b.txt", [{"paths": ["a.txt", "b.txt"]}]),
        (MOVE, "Move a.txt to b.txt", [{"source": "a.txt", "destination": "b.txt"}]),
    ],
)
def test_several_paths_fill_several_calls(spec, text: str, each: list[dict[str, Any]]):
    assert [one.params for one in fill_per_path(spec, text)] == each


@pytest.mark.parametrize(
    "spec",
    [
        tool("x.y", "a"),
        tool("x.y", a={"enum": [1, None, True]}),
        tool("x.y", a={"type": []}),
        tool("x.y", a={"type": "array", "items": True}),
        tool("x.y", a={"anyOf": ["rubbish"]}),
    ],
)
def test_odd_schemas_fill_nothing(spec):
    found = fill_parameters(spec, "Read a.txt 'b' 5 `c`")
    assert {name: value for name, value in found.params.items() if name != "a"} == {}


@pytest.mark.parametrize(
    ("name", "spec", "said", "value"),
    [
        ("content", WRITE, "'hello'", "hello"),
        ("path", READ, "I meant b.txt", "b.txt"),
        ("limit", SEARCH, "7", 7),
        ("quiet", tool("x.y", quiet={"type": "boolean"}), "not quiet", False),
        ("quiet", tool("x.y", quiet={"type": "boolean"}), "yes please", True),
        ("command", RUN, "ls -l", ["ls", "-l"]),
        ("nothing", RUN, "ls -l", None),
    ],
)
def test_an_answer_fills_the_requested_parameter(name: str, spec, said: str, value: Any):
    assert value_from_answer(spec, name, said) == value


def test_unused_mentions_are_reported():
    left = fill_parameters(READ, "Read a.txt for Anna and 'the boss', 12 times").unused
    assert [span.text for span in left] == ["Anna", "the boss", "12"]


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["'a ", "a/", "may 5 ", "[", "A of ", "k=v ", "读取"])
def test_a_long_request_is_read(piece: str):
    fill_parameters(FLAGS, (piece * 100_000)[:100_000])
