"""The benchmark of everyday requests: its input, its grades, and a run on the real built-in tools."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.programs import require

from benchmarks.everyday.__main__ import main
from benchmarks.everyday.cases import SERVERS, Request, read_requests
from benchmarks.everyday.grading import Grade, TimeSpan, grade
from benchmarks.everyday.playing import CallRecord, Transcript
from benchmarks.everyday.world import World

NOON = TimeSpan(datetime(2026, 3, 1, 12, 0, tzinfo=UTC), datetime(2026, 3, 1, 12, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> World:
    require("git")
    return World(tmp_path_factory.mktemp("world"), "http://127.0.0.1:1")


@pytest.fixture
def world(place: World) -> World:
    place.reset()
    return place


READ = CallRecord("ai.read", {}, 0.95, doubted=False, approved=False, ran=True, failed=False)


def graded(world: World, *calls: CallRecord, answer: str = "", questions: int = 0, expect: Any = None) -> Grade:
    line = {"id": "one", "servers": ["builtin"], "say": ["do it"], "expect": expect or {}}
    transcript = Transcript([answer], [[*calls]], questions, asks=questions > 0)
    return grade(Request.model_validate(line), transcript, world, NOON)


def test_a_request_with_the_expected_effect_passes(world: World):
    (world.root / "new").mkdir()
    (world.root / "new" / "a.txt").write_text("green tea\n")
    expect = {
        "answer": [["noon", "{now UTC} now"]],
        "files": {"new/a.txt": {"is": "green tea"}, "todo.md": {"has": ["plumber"]}, "nowhere.txt": None},
        "sql": [{"query": "SELECT count(*) FROM customers", "rows": [[10]]}],
        "memory": ['"name":"Mira"', '"name": "Mira"'],
        "git": [{"command": "log -1 --format=%s", "has": ["VAT"]}],
    }
    found = graded(world, READ, answer="It is  12:01\nNow.", expect=expect)
    assert (found.outcome, found.problems) == ("well", ())


def test_an_unwanted_change_is_wrong_with_any_answer(world: World):
    (world.root / "todo.md").unlink()
    found = graded(world, questions=1)
    assert (found.outcome, found.wrong_kind, found.problems[0]) == ("wrong", "changed", "todo.md has changed")
    world.reset()
    world.git("branch spring")
    assert graded(world).problems == ("the git repository has changed",)
    assert graded(world, expect={"files": {".git/refs/heads/spring": {"has": ["\n"]}}}).outcome == "well"
    world.reset()
    world.memory.write_text("")
    assert graded(world, expect={"memory": ["Mira"]}).wrong_kind == "changed"
    world.reset()
    assert graded(world, expect={"calls": 0}).outcome == "well", "nothing is changed"


def test_a_reset_replaces_only_what_changed(world: World):
    """The sandbox refuses calls of a server once git's settings have been replaced."""
    settings = (world.root / ".git" / "config").stat().st_ino
    (world.root / "todo.md").unlink()
    (world.root / "todo.md" / "deep").mkdir(parents=True)
    world.git("branch spring")
    world.reset()
    assert world.state() == world.before
    assert (world.root / ".git" / "config").stat().st_ino == settings


def test_the_requests_are_valid():
    requests = read_requests()
    assert len(requests) > 350
    assert {name for request in requests for name in request.servers} == {*SERVERS}


def test_the_benchmark_runs_on_the_built_in_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    require("git")
    lines: list[dict[str, Any]] = [
        {"id": "read", "say": ["read todo.md"], "expect": {"answer": ["parking permit"], "unchanged": True}},
        {"id": "write", "say": ['write "tea" to new.txt'], "expect": {"files": {"new.txt": {"is": "tea"}}}},
        {"id": "none", "say": ["thanks"], "expect": {"calls": 0}},
        {"id": "wrong", "say": ["read todo.md"], "expect": {"answer": ["the moon"]}},
    ]
    file, explanations = tmp_path / "r.jsonl", tmp_path / "told.jsonl"
    file.write_text("".join(json.dumps({**line, "servers": ["builtin"]}) + "\n" for line in lines))
    main(["--port", "0", "--requests", str(file), "--json", "--explain", str(explanations)])
    builtin, totals = map(json.loads, capsys.readouterr().out.splitlines())
    assert (builtin["requests"], builtin["well"], builtin["wrong"], totals["calls"]) == (4, 3, 1, 3)
    explained = {one["id"]: one for one in map(json.loads, explanations.read_text().splitlines())}
    assert explained["wrong"]["problems"] == ["the answer lacks 'the moon'"]
    assert [call["approved"] for call in explained["write"]["calls"][0]] == [True]
