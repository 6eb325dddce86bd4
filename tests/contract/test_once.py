"""An answer counts once, a call runs once, and a killed process leaves no change that runs twice."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contract.doors import AGENTS, ALL, GATES, GRAPH, LIBRARY, MIDDLEWARE, PROXY, Outcome, Setup, open_door
from contract.office import Made, Office
from contract.rows import WRITES, find, mail, through
from langgraph.types import Command

MAIL, WORDS = mail(), "Send a mail to mia@example.org"
SENT = [("send_mail", MAIL[1])]
CONFIG: Any = {"configurable": {"thread_id": "one"}}
UNTIL_THE_CALL = {GRAPH: "execute_tool", MIDDLEWARE: "tools"}
"""The node that runs calls."""


@through(*AGENTS)
@pytest.mark.parametrize(("first", "ran"), [("approve", SENT), ("reject", [])])
async def test_a_second_answer_to_a_question_runs_nothing(
    first: str, ran: list[Made], door: str, tmp_path: Path
) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        (asked,) = (await opened.turn([MAIL], words=WORDS)).asked
        await opened.reply(asked, first)
        assert opened.office.made == ran
        await opened.reply(asked, "approve")
    assert opened.office.made == ran


@through(*AGENTS)
async def test_one_of_two_answers_at_once_counts(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        (asked,) = (await opened.turn([MAIL], words=WORDS)).asked
        await asyncio.gather(*(opened.reply(asked, "approve") for _ in range(2)))
    assert opened.office.made == SENT


@through(*AGENTS)
async def test_one_of_two_answers_through_two_openings_of_the_database_counts(door: str, tmp_path: Path) -> None:
    office, setup = Office(), Setup(tmp_path, WRITES, stored=True)
    async with open_door(door, setup, office) as first, open_door(door, setup, office) as second:
        (asked,) = (await first.turn([MAIL], words=WORDS)).asked
        await asyncio.gather(first.reply(asked, "approve"), second.reply(asked, "approve"))
    assert office.made == SENT


@through(GRAPH, MIDDLEWARE)
@pytest.mark.parametrize("first", ["approve", "reject"])
async def test_an_answer_in_a_fork_does_not_count_for_the_answered_question(
    first: str, door: str, tmp_path: Path
) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        (asked,) = (await opened.turn([MAIL], words=WORDS)).asked
        await opened.reply(asked, first)
        before = list(opened.office.made)
        states = [state async for state in opened.graph.aget_state_history(CONFIG)]
        fork = next(state.config for state in states if state.interrupts)
        state = await opened.graph.ainvoke(Command(resume="approve"), fork)
        assert "already answered" in state["__interrupt__"][0].value["problem"]
        assert opened.office.made == before
        where = fork if door == MIDDLEWARE else CONFIG  # only the graph has stored its new question
        while "__interrupt__" in state:  # LangGraph first passes the earlier answers
            assert opened.office.made == before
            state = await opened.graph.ainvoke(Command(resume="approve"), where)
    assert opened.office.made == [*before, *SENT]


@through(GRAPH, MIDDLEWARE)
async def test_a_finished_write_is_not_run_again_by_a_replay(door: str, tmp_path: Path) -> None:
    office, setup = Office(), Setup(tmp_path, WRITES, stored=True)
    async with open_door(door, setup, office) as opened:
        await opened.turn([MAIL], words=WORDS, answers=["approve"])
        states = [state async for state in opened.graph.aget_state_history(CONFIG)]
    before = next(state.config for state in states if state.next == (UNTIL_THE_CALL[door],))
    async with open_door(door, setup, office) as other:
        state = await other.graph.ainvoke(None, before)
    assert "sent to mia@example.org" in str(state)
    assert office.made == SENT


@through(*AGENTS)
async def test_the_same_write_twice_at_once_runs_once(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        await opened.turn([MAIL, MAIL], words=WORDS, answers=["approve"])
    assert opened.office.made == SENT


@through(*AGENTS)
async def test_the_same_write_again_in_a_request_is_not_run_again(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        outcome = await opened.turn([MAIL], [MAIL], words=WORDS, answers=["approve", "approve"])
    assert len(outcome.asked) == 1
    assert opened.office.made == SENT


@through(LIBRARY)
async def test_the_same_read_again_in_a_turn_ends_the_loop(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path)) as opened:
        await opened.turn([find(), find()], [find()], words="Find order 17")
    assert opened.office.made == [find()]


@through(*ALL)
async def test_the_same_write_in_a_new_request_is_asked_about(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        await opened.turn([MAIL], words=WORDS, answers=["approve"])
        assert (await opened.turn([MAIL], words=WORDS)).waits
    assert opened.office.made == SENT


@through(*AGENTS)
@pytest.mark.parametrize(("changes", "ran"), [(False, SENT), (True, [])], ids=["the same tool", "a changed tool"])
async def test_another_process_takes_the_answer_unless_the_tool_changed(
    changes: bool, ran: list[Made], door: str, tmp_path: Path
) -> None:
    office, setup = Office(), Setup(tmp_path, WRITES, stored=True)
    async with open_door(door, setup, office) as opened:
        (asked,) = (await opened.turn([MAIL], words=WORDS)).asked
    if changes:
        office.change_mail()
    async with open_door(door, setup, office) as opened:
        outcome = await opened.reply(asked, "approve")
    assert (outcome.waits, office.made) == (changes, ran)


@through(PROXY)
async def test_a_tool_that_changes_while_its_question_is_open_does_not_run(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:

        async def change() -> str:
            opened.office.change_mail()
            await opened.announce()
            return "approve"

        outcome = await opened.turn([MAIL], words=WORDS, answers=[change])
    assert len(outcome.asked) == 1
    assert opened.office.made == []


async def state_of_a_killed_process(door: str, office: Office, setup: Setup, tool: str, home: Path) -> Setup:
    """Run the requested tool; return a setup with copies of the databases from the time when the tool ran."""
    (home := home / "killed").mkdir()

    async def snapshot(_: str) -> None:
        for file in sorted(setup.home.glob("*.db")):
            with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(home / file.name)) as copy:
                source.backup(copy)

    office.on_call = snapshot
    words, step = (WORDS, [MAIL]) if tool == "send_mail" else ("Find order 17", [find()])
    async with open_door(door, setup, office) as opened:
        await opened.turn(step, words=words, answers=["approve"])
    office.on_call = None
    assert [name for name, _ in office.made] == [tool]
    return replace(setup, home=home)


DOUBT = "it is not known whether it finished"
ALLOWED = '[[policy.rules]]\neffect = "allow"\ntool = "SERVER.*"\n'


async def after_a_kill(door: str, tmp_path: Path, *answers: str, policy: str = ALLOWED) -> tuple[Outcome, int]:
    """Continue after a kill during a write; return the outcome, and how often the write ran in total."""
    office, setup = Office(), Setup(tmp_path, WRITES, policy, stored=True)
    killed = await state_of_a_killed_process(door, office, setup, "send_mail", tmp_path)
    async with open_door(door, killed, office) as opened:
        outcome = await opened.resume([MAIL], WORDS, answers)
    return outcome, len(office.made)


@through(*GATES)
async def test_a_write_that_a_kill_interrupted_is_unknown_and_does_not_run_unasked(door: str, tmp_path: Path) -> None:
    outcome, runs = await after_a_kill(door, tmp_path)
    assert runs == 1
    assert DOUBT in f"{outcome.question}{outcome.output}"


@through(*GATES)
@pytest.mark.parametrize(("answer", "runs"), [("reject", 1), ("skip", 1), ("approve", 2)])
async def test_a_write_that_a_kill_interrupted_is_asked_about(
    answer: str, runs: int, door: str, tmp_path: Path
) -> None:
    outcome, runs_in_all = await after_a_kill(door, tmp_path, answer)
    assert len(outcome.asked) == 1
    assert DOUBT in outcome.question
    assert runs_in_all == runs


@through(*GATES)
async def test_the_question_about_a_write_without_a_rule_states_the_doubt(door: str, tmp_path: Path) -> None:
    outcome, _ = await after_a_kill(door, tmp_path, policy="")
    assert DOUBT in outcome.question


@through(GRAPH, MIDDLEWARE)
async def test_a_read_that_a_kill_interrupted_runs_again(door: str, tmp_path: Path) -> None:
    office = Office()
    killed = await state_of_a_killed_process(door, office, Setup(tmp_path, stored=True), "find_order", tmp_path)
    async with open_door(door, killed, office) as opened:
        outcome = await opened.resume([find()], "Find order 17")
    assert outcome.asked == []
    assert office.made == [find(), find()]
