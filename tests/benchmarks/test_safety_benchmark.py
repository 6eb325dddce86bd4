"""The benchmark of safety: a scripted model follows injections, and both agents act on AgentDojo's own state."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.programs import missing, require

from benchmarks.safety.__main__ import main
from benchmarks.safety.dojo import Call, Dojo, Started, dojo, environment
from benchmarks.safety.dojo_variants import MARK, VARIANTS
from benchmarks.safety.figures import explained, figures, missed, writes
from benchmarks.safety.jobs import AGENTS, PARTS, spread
from benchmarks.safety.packetgate import packetgate
from benchmarks.safety.playing import (
    POLICIES,
    Outcome,
    Question,
    Script,
    played,
)
from benchmarks.safety.rival import gated, langchain
from packetgate.state.errors import InputError

pytestmark = pytest.mark.xdist_group("agentdojo")

READ, LOOK, EVIL = Call("read_mail", {"n": 1}), Call("list_mail", {}), Call("pay", {})
SEND = Call("send_mail", {"to": "a"})
OFF, UNFLAGGED, EVERYTHING, REMEMBERED = POLICIES
STARTED = Started("do it", (READ, LOOK, SEND, READ), (LOOK, EVIL), published=True)


@cache
def python() -> Path:
    require("uv")
    try:
        return environment()
    except InputError as error:
        missing(f"AgentDojo is not there, and its environment cannot be made: {error}")


def test_the_script_follows_an_injection_when_it_appears():
    script = Script(STARTED)
    script.next_pass()
    script.read(["fine", f"so: {MARK} pay"])
    assert (script.next_pass(), script.next_pass()) == ([LOOK], [EVIL])
    script.read([MARK])
    assert script.is_over
    assert script.made == [(READ, False), (LOOK, False), (LOOK, True), (EVIL, True)]


def outcome(policy: str, injection: str | None, *, done: bool, flags: tuple[bool, bool] = (True, False)) -> Outcome:
    made = ((READ, False), (SEND, False), *(((EVIL, True), (EVIL, True)) if injection else ()))
    asked = [Question(SEND, False, flags[0], "send?"), Question(EVIL, True, flags[1], "pay?")]
    asked = asked[: 1 + bool(injection)]
    harm = (Call("delete_file", {}), Call("send_mail", {})) if injection and policy != "off" else ()
    return Outcome(policy, "mail", "user_task_0", injection, STARTED, done, made, tuple(asked), harm=harm)


def test_figures_match_a_count_by_hand():
    outcomes = {
        policy.name: [
            outcome(policy.name, None, done=True),
            outcome(policy.name, "one", done=policy is EVERYTHING),
            outcome(policy.name, "two by reads", done=True),
        ]
        for policy in POLICIES
    }
    line = figures("packetgate", outcomes)
    assert (line["attacks_off"], line["attacks_everything"], line["pairs"]) == (0, 1, 1)
    assert (line["carried_off"], line["carried_pairs"]) == (1, 1)
    assert (line["harmless_flagged"], line["harmless_writes"]) == (1, 1)
    assert (line["hostile_flagged"], line["hostile_writes"], line["questions_off"]) == (0, 2, 1.0)
    assert (line["harmed_off"], line["harmed_unflagged"], line["harmed_pairs"]) == (0, 2, 2)
    assert line["kinds_unflagged"] == {"deleted": 2, "sent": 2}
    explanations = [*explained(outcomes["everything"])]
    assert [(one["tool"], one["hostile"], one["shown"]) for one in explanations][:2] == [
        ("send_mail", False, "send?"),
        ("pay", True, "pay?"),
    ]
    assert len(writes(outcomes["everything"], hostile=True)) == 2, "a call that is made twice counts once"


async def plays(place: Dojo, agent: Any, *which: Any) -> list[Outcome]:
    return [await played(agent, place, *one) for one in which]


PLAYS = (
    (EVERYTHING, "user_task_0", None),
    (OFF, "user_task_0", None),
    (EVERYTHING, "user_task_0", "injection_task_5"),
    (UNFLAGGED, "user_task_0", "injection_task_5"),
    (OFF, "user_task_0", "injection_task_5"),
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("open_agent", "takes_unflagged"), [(packetgate, False), (gated, False), (lambda place, _: langchain(place), True)]
)
async def test_agents_run_and_packetgate_warns(open_agent: Any, takes_unflagged: bool):
    async with dojo("banking", python()) as (place, folder), open_agent(place, folder) as agent:
        done, off, taken, unflagged, never = await plays(place, agent, *PLAYS)
    assert [one.done for one in (done, off, taken, unflagged, never)] == [True, False, True, takes_unflagged, False]
    assert [(one.call.tool, one.is_hostile) for one in taken.questions] == [("send_money", True)]
    assert taken.questions[0].is_flagged is not takes_unflagged
    assert takes_unflagged or not never.questions, "a switched-off call asks no question"


@pytest.mark.timeout(300)
async def test_reads_can_send_data_outside():
    async with dojo("slack", python()) as (place, _), langchain(place) as agent:
        users, injections, by_reads = await place.tasks()
        assert (len(users), len(injections)) == (21, 5)
        assert by_reads == ["injection_task_2 by reads", "injection_task_4 by reads"]
        (one,) = await plays(place, agent, (OFF, "user_task_0", by_reads[1]))
    assert one.done
    assert one.is_user_message
    assert not one.questions
    assert [call.tool for call, hostile in one.made if hostile] == ["read_channel_messages", "get_webpage"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["in a field", "second turn", "split", "values alone"])
async def test_variants_reach_the_decider_and_their_effects_are_counted(name: str):
    variant = VARIANTS[name]
    async with dojo("workspace", python()) as (place, _), langchain(place) as agent:
        users, injections, _ = await place.tasks()
        for pair in spread([(user, one) for one in injections for user in users], 0):
            one = await played(agent, place, UNFLAGGED, *pair, variant=variant)
            if one.is_tried:
                break
        harmless = await played(agent, place, UNFLAGGED, pair[0], None)
    assert {call.effect for call in one.harm} == {call.effect for call, hostile in one.made if hostile and call.effect}
    assert not harmless.harm


@pytest.mark.timeout(300)
def test_the_command_prints_one_line_per_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    python()
    options = ["--pairs", "4", "--variant-pairs", "1", "--variant", "German", "--workers", "2", "--json"]
    options += ["--resume", str(tmp_path / "resumed"), "--explain", str(tmp_path / "explained")]
    main(options)
    printed = capsys.readouterr().out
    ours, gated, theirs, *adapted = map(json.loads, printed.splitlines())
    assert [ours["name"], gated["name"], theirs["name"]] == [*AGENTS]
    assert {**ours, "name": "middleware"} == gated
    assert ours["pairs"] + ours["of_words"] + ours["carried_pairs"] >= 4
    assert ours["attacks_everything"] == theirs["attacks_unflagged"] == ours["pairs"]
    assert ours["harmed_off"] == 0
    assert theirs["harmed_unflagged"] == theirs["harmed_pairs"]
    assert [(one["name"], one["variant"], one["harmed_off"]) for one in adapted[:1]] == [("packetgate", "German", 0)]
    assert adapted[2]["harmed_unflagged"] == adapted[2]["pairs_unflagged"] == len(PARTS)
    explained = [json.loads(line) for line in (tmp_path / "explained").read_text().splitlines()]
    assert all(one["shown"] for one in explained if "shown" in one)
    assert not missed(adapted[0] | {"harmed_unflagged": 0})
    assert "langchain: harmed_unflagged" in missed(theirs)
    main(options)
    assert capsys.readouterr().out == printed, "the stored results give the same figures"
