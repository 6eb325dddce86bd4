"""A question shows everything that will run. Each answer has its effect, and one decision decides one call."""

from pathlib import Path
from typing import Any

import pytest
from contract.doors import AGENTS, ALL, GRAPH, MIDDLEWARE, PROXY, Setup, open_door
from contract.office import Made
from contract.rows import ASKS, NOTE_A, WRITES, Row, check, each, find, mail, note, request, through
from langchain_core.messages import HumanMessage

NOTE = NOTE_A.steps[0]
WORDS = "Write avocado to note a, then find order 17"


def editing(tool: str = "", **args: Any) -> dict[str, Any]:
    """Return a decision in LangChain's form that edits a call."""
    return {"decisions": [{"type": "edit", "edited_action": {"name": tool or "write_note", "args": args}}]}


APPROVED = {"name": "a", "text": "avocado", "mode": "replace"}
FORMS = (GRAPH, MIDDLEWARE)
"""Doors that accept answers in every form."""
ANSWERS: list[tuple[str, Any, dict[str, Any] | None, Any]] = [
    ("approve runs the call", "approve", APPROVED, ALL),
    ("reject does not run the call", "reject", None, ALL),
    ("skip does not run the call", "skip", None, ALL),
    ("yes runs the call", "yes", APPROVED, FORMS),
    ("no does not run the call", "no", None, FORMS),
    ("a decision in LangChain's form runs the call", {"decisions": [{"type": "approve"}]}, APPROVED, FORMS),
    ("a rejection in LangChain's form does not run it", {"decisions": [{"type": "reject"}]}, None, FORMS),
    ("an accept of Agent Inbox runs the call", [{"type": "accept"}], APPROVED, FORMS),
    ("an ignore of Agent Inbox does not run the call", [{"type": "ignore", "args": None}], None, FORMS),
    ("an edited call runs as edited", editing(name="b", text="x"), {"name": "b", "text": "x"}, AGENTS),
    ("an edit of Agent Inbox runs as edited", [{"type": "edit", "args": {"name": "b", "text": "y"}}],
     {"name": "b", "text": "y"}, FORMS),
    ("a response in words does not run the call", [{"type": "response", "args": "call it b"}], None, FORMS),
    ("words that are no verdict do not run the call", "call it b", None, AGENTS),
    ("an answer that was not offered does not run the call", "perhaps", None, [PROXY]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "runs_as", "door"),
    [
        pytest.param(answer, runs_as, door, id=f"{promise} ({door})")
        for promise, answer, runs_as, doors in ANSWERS
        for door in doors
    ],
)
async def test_an_answer_has_its_effect(answer: Any, runs_as: dict[str, Any] | None, door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        outcome = await opened.turn(NOTE, words=NOTE_A.words, answers=[answer])
    made = [args for _, args in opened.office.made]
    assert outcome.asked
    assert len(made) == (runs_as is not None)
    assert all(runs_as is not None and runs_as.items() <= args.items() for args in made)


UNUSABLE: list[tuple[str, Any]] = [
    ("no decision", {"decisions": []}),
    ("a number", 7),
    ("an unknown decision", {"decisions": [{"type": "sing"}]}),
    ("one decision too many", {"decisions": [{"type": "approve"}] * 2}),
    ("an edit with a missing argument", editing(name="a")),
    ("an edit with a value of another type", editing(name="a", text=5)),
    ("an edit with an unknown parameter", editing(name="a", text="x", colour="red")),
    ("an edit that names an unknown tool", editing("burn_note", name="a")),
]


@pytest.mark.parametrize(
    ("answer", "door"),
    [pytest.param(answer, door, id=f"{what} asks again ({door})") for what, answer in UNUSABLE for door in FORMS],
)
async def test_an_unusable_answer_repeats_the_question(answer: Any, door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        outcome = await opened.turn(NOTE, words=NOTE_A.words, answers=[answer, "approve"])
    first, again = outcome.asked
    assert first.calls == again.calls
    assert again.payload["problem"]
    assert opened.office.made == [("write_note", APPROVED)]


SHOWN = [
    Row("a question shows the tool, every argument and the reason",
        request("Write to mia@example.org: it is late", mail()), ASKS, "need approval", settings=WRITES),
    Row("a question shows the end of a long argument",
        request("Write the list to note a", note("a", "x " * 3_000 + "and the end")), ASKS, "and the end",
        settings=WRITES),
]  # fmt: skip


@each(SHOWN)
async def test_a_question_is_complete(row: Row, door: str, tmp_path: Path) -> None:
    await check(row, door, tmp_path)


@through(*AGENTS)
async def test_one_question_covers_the_calls_that_need_one_and_decides_each(door: str, tmp_path: Path) -> None:
    three = [note("a"), find(), note("b"), note("c")]
    decisions = {
        "decisions": [{"type": "reject"}, editing(name="d", text="avocado")["decisions"][0], {"type": "approve"}]
    }
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        outcome = await opened.turn(three, words="Write avocado to a, b and c, and find order 17", answers=[decisions])
    (asked,) = outcome.asked
    assert [args["name"] for _, args in asked.calls] == ["a", "b", "c"]
    assert sorted(args.get("name", "order") for _, args in opened.office.made) == ["c", "d", "order"]


@through(*AGENTS)
async def test_too_few_decisions_decide_nothing(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        one = {"decisions": [{"type": "approve"}]}
        outcome = await opened.turn([note("a"), note("b")], words="Write avocado to a and b", answers=[one])
    assert outcome.waits
    assert opened.office.made == []


@through(*ALL)
async def test_an_approval_is_for_one_call(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        outcome = await opened.turn(NOTE, [note("b")], words="Write avocado to a and b", answers=["approve"])
    assert outcome.waits
    assert [args["name"] for _, args in opened.office.made] == ["a"]


@through(GRAPH, PROXY)
@pytest.mark.parametrize("made", [note(), ("get_forecast", {"city": "Bern"})], ids=["write", "unconfirmed read"])
async def test_with_nobody_to_ask_the_call_does_not_run(made: Made, door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES, can_ask=False)) as opened:
        outcome = await opened.turn([made], words="Write avocado to a")
    assert (opened.office.made, outcome.asked) == ([], [])
    assert outcome.output


@through(*ALL)
async def test_an_answer_to_an_expired_question_does_not_run_the_call(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, {**WRITES, "ask_timeout_s": 1e-6})) as opened:
        await opened.turn(NOTE, words=NOTE_A.words, answers=["approve"])
    assert opened.office.made == []


@through(*AGENTS)
async def test_a_response_in_words_reaches_the_model(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES)) as opened:
        outcome = await opened.turn(NOTE, words=NOTE_A.words, answers=[[{"type": "response", "args": "call it Zebra"}]])
    assert "call it Zebra" in outcome.output
    assert opened.office.made == []


@through(GRAPH)
async def test_a_thread_id_without_a_checkpointer_asks_nobody(door: str, tmp_path: Path) -> None:
    async with open_door(door, Setup(tmp_path, WRITES, can_ask=False)) as opened:
        opened.begin([NOTE])
        given = {"messages": [HumanMessage(NOTE_A.words)]}
        state = await opened.graph.ainvoke(given, {"configurable": {"thread_id": "one"}})
    assert opened.office.made == []
    assert "__interrupt__" not in state
