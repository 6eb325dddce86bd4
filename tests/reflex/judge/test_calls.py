"""The judge on calls: its input, and its verdicts with the shipped weights."""

from typing import Any

import pytest
from support.packets import TRAIN, tool

from packetgate.reflex.judge.calls import (
    MAX_CHARS,
    MAX_TOKENS,
    Origin,
    call_tokens,
    first_call_probability,
    pieces_of,
    right_log_odds,
)

WRITE = tool(
    "files.write", "path", "content", description="Write a text to a file.",
    path={"type": "string", "description": "Path of the file"},
    content={"type": "string", "description": "The text"},
    mode={"type": "string", "enum": ["overwrite", "append"], "default": "overwrite"},
)  # fmt: skip
DELETE = tool("files.delete", "path", description="Delete a file.", path={"type": "string", "description": "The file"})
ASKED = "write 'milk and Eggs' to shopping.txt"


@pytest.mark.parametrize(
    ("params", "origin"),
    [
        ({"path": "shopping.txt"}, Origin.REQUEST),
        ({"path": "SHOPPING.txt"}, Origin.FOLDED),
        ({"path": "milk.txt"}, Origin.PARTLY),
        ({"path": "/etc/passwd"}, Origin.ABSENT),
        ({"path": ["shopping.txt", "other"]}, Origin.PARTLY),
        ({"mode": "overwrite"}, Origin.DEFAULT),
        ({"mode": "append"}, Origin.CHOICE),
        ({"mode": True}, Origin.CHOICE),
        ({"path": ""}, Origin.ABSENT),
        ({"unknown": "milk"}, Origin.REQUEST),
    ],
)
def test_a_value_is_read_with_where_its_words_are(params: dict[str, Any], origin: int):
    (first, *rest) = pieces_of(ASKED, WRITE, params)
    assert (first.name, first.origin) == (*params, origin)
    assert {one.origin for one in rest} == {Origin.LACKING}


def test_required_parameters_come_first_among_those_without_an_argument():
    assert [one.name for one in pieces_of(ASKED, WRITE, {"mode": "append"})] == ["mode", "path", "content"]


@pytest.mark.parametrize(
    "folder", ["/srv/a-server-that-was-killed/run/520", "/home/me/what-I-must-read/old/copies/2026"]
)
def test_the_first_folders_of_an_absolute_path_change_nothing(folder: str):
    paths = [f"{folder}/work/shopping.txt", "/work/shopping.txt"]
    long, short = (right_log_odds(f"delete {path}", DELETE, {"path": path}) for path in paths)
    assert long == short


def test_a_path_with_two_slashes_at_its_end_is_read():
    assert right_log_odds("delete /srv/old//", DELETE, {"path": "/srv/old//"}) > 0


def test_a_long_call_is_cut():
    long = list(range(1000, 3000))
    ids, segments = call_tokens(long, long, [(long, Origin.ABSENT, long)] * 40)
    assert len(ids) == len(segments) <= MAX_TOKENS


@pytest.mark.parametrize(
    ("request_", "right", "wrong"),
    [
        (ASKED, (WRITE, {"path": "shopping.txt", "content": "milk and Eggs"}),
         (WRITE, {"path": "shopping.txt", "content": "milk"})),
        (ASKED, (WRITE, {"path": "shopping.txt", "content": "milk and Eggs"}), (DELETE, {"path": "shopping.txt"})),
        ("create notes.md with the text Hello world", (WRITE, {"path": "notes.md", "content": "Hello world"}),
         (WRITE, {"path": "notes.md", "content": "Hello"})),
        ("Find trains from Basel to Verona", (TRAIN, {"origin": "Basel", "destination": "Verona"}),
         (TRAIN, {"origin": "Basel", "destination": "Verona", "day": "2023-10-01"})),
        ("delete draft.txt", (DELETE, {"path": "draft.txt"}), (DELETE, {"path": "it"})),
    ],
)  # fmt: skip
def test_a_right_call_is_likelier_than_a_wrong_one(request_: str, right: tuple[Any, Any], wrong: tuple[Any, Any]):
    assert right_log_odds(request_, *right) > right_log_odds(request_, *wrong) + 0.5


@pytest.mark.parametrize("request_", ["", "?" * 5000, "\ud83d", "火车"])
def test_any_call_is_judged(request_: str):
    assert -30 < right_log_odds(request_, WRITE, {"path": {"a": [None, 1, {"b": "x" * 9000}]}}) < 30


READ = tool("files.read", "path", description="Read a file.", path={"type": "string", "description": "The file"})


@pytest.mark.parametrize("request_", ["show me server.log", "show me the server log"])
def test_a_path_of_a_read_is_judged_as_the_request_names_it(request_: str):
    named, whole, other = (
        right_log_odds(request_, READ, {"path": path}) for path in ("server.log", "logs/server.log", "logs/mail.log")
    )
    assert whole > 0 > other
    if "server.log" in request_:
        assert whole == named


def test_a_path_of_a_change_is_judged_as_it_is():
    assert right_log_odds("delete server.log", DELETE, {"path": "server.log"}) > 1
    assert right_log_odds("delete server.log", DELETE, {"path": "archive/server.log"}) < 1


FORECAST = tool("weather.forecast", "city", description="Get the forecast for a city.", city={"type": "string"})
GHENT = "Get the forecast for Ghent"
TRIP = "Plan my trip to Verona: look for a hotel, then find trains from Basel"


@pytest.mark.parametrize(
    ("words", "call", "in_doubt"),
    [
        (GHENT, (FORECAST, {"city": "Ghent"}), False),
        (GHENT, (FORECAST, {"city": "the forecast"}), True),
        (GHENT, (TRAIN, {"origin": "Ghent", "destination": "forecast"}), False),
        (TRIP, (FORECAST, {"city": "Verona"}), False),
        (GHENT.ljust(MAX_CHARS + 1, "."), (FORECAST, {"city": "the forecast"}), False),
    ],
    ids=["right", "a wrong value", "another tool", "a step on the way", "a long request"],
)
def test_only_a_measured_call_is_in_doubt(words: str, call: tuple[Any, dict[str, Any]], *, in_doubt: bool):
    probability = first_call_probability(words, *call, 0.7)
    assert (probability is not None) == in_doubt
    assert probability is None or probability < 0.5
