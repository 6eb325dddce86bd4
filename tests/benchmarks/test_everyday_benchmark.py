"""The benchmark of everyday requests: its input, its judgements, and a run on the real built-in tools."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.programs import require

from benchmarks.everyday.__main__ import main
from benchmarks.everyday.asked import SERVERS, Asked, read_asked
from benchmarks.everyday.judging import Moment, Verdict, judged
from benchmarks.everyday.playing import Made, Played
from benchmarks.everyday.world import World

NOON = Moment(datetime(2026, 3, 1, 12, 0, tzinfo=UTC), datetime(2026, 3, 1, 12, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> World:
    require("git")
    return World(tmp_path_factory.mktemp("world"), "http://127.0.0.1:1")


@pytest.fixture
def world(place: World) -> World:
    place.reset()
    return place


def asked(**expect: Any) -> Asked:
    line = {"id": "one", "servers": ["builtin"], "say": ["do it"], "expect": expect}
    return Asked.model_validate(line)


def made(*, confidence: float = 0.95, approved: bool = False, failed: bool = False) -> Made:
    return Made("ai.read", {}, confidence, doubted=confidence < 0.7, approved=approved, ran=True, failed=failed)


def judge(world: World, *calls: Made, shown: str = "", questions: int = 0, **expect: Any) -> Verdict:
    return judged(asked(**expect), Played([shown], [[*calls]], questions, asks=questions > 0), world, NOON)


def test_a_request_with_the_expected_effect_passes(world: World):
    (world.root / "new").mkdir()
    (world.root / "new" / "a.txt").write_text("green tea\n")
    verdict = judge(
        world,
        made(),
        shown="It is  12:01\nNow.",
        answer=[["noon", "{now UTC} now"]],
        files={"new/a.txt": {"is": "green tea"}, "todo.md": {"has": ["plumber"]}, "nowhere.txt": None},
        sql=[{"query": "SELECT count(*) FROM customers", "rows": [[10]]}],
        memory=['"name":"Mira"', '"name": "Mira"'],
        git=[{"command": "log -1 --format=%s", "has": ["VAT"]}],
    )
    assert (verdict.outcome, verdict.problems) == ("well", ())


def test_an_unwanted_change_is_wrong_with_any_answer(world: World):
    (world.root / "todo.md").unlink()
    verdict = judge(world, questions=1)
    assert (verdict.outcome, verdict.wrong, verdict.problems[0]) == ("wrong", "changed", "todo.md has changed")
    world.reset()
    world.git("branch spring")
    assert judge(world).problems == ("what git keeps has changed",)
    assert judge(world, files={".git/refs/heads/spring": {"has": ["\n"]}}).outcome == "well"
    world.reset()
    world.memory.write_text("")
    assert judge(world, memory=["Mira"]).wrong == "changed"
    world.reset()
    assert judge(world, calls=0).outcome == "well", "nothing is changed"


def test_the_requests_are_valid():
    kept = read_asked()
    assert len(kept) > 350
    assert {name for one in kept for name in one.servers} == {*SERVERS}


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
    main(["--requests", str(file), "--json", "--explain", str(explanations)])
    builtin, totals = map(json.loads, capsys.readouterr().out.splitlines())
    assert (builtin["requests"], builtin["well"], builtin["wrong"], totals["calls"]) == (4, 3, 1, 3)
    explained = {one["id"]: one for one in map(json.loads, explanations.read_text().splitlines())}
    assert explained["wrong"]["problems"] == ["the answer lacks 'the moon'"]
    assert [call["approved"] for call in explained["write"]["calls"][0]] == [True]
