"""Past turns are read from the journal, with the outcome of each call."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.graphs import session
from support.notebook import Notebook
from support.scripted_deciders import call, calls, scripted, wanted
from support.usage import entries_of

from packetgate.gate.journal import Entry, RecordedEntry
from packetgate.graph.journal import journal_at
from packetgate.graph.usage import (
    PastCall,
    PastTurn,
    ToolUsage,
    answered_calls,
    past_turns,
    read_turns,
    usage_by_tool,
)
from packetgate.state.sections import ApprovalOutcome
from packetgate.state.transitions import ToolExecutionStatus as Status

READ, WRITE, WEATHER = "notebook.read_note", "notebook.write_note", "notebook.check_weather"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def turns_of(*entries: Entry) -> list[PastTurn]:
    return past_turns(RecordedEntry(number, NOON, entry) for number, entry in enumerate(entries))


async def test_a_turn_is_read_from_the_journal(notebook: Notebook, tmp_path: Path) -> None:
    journal = journal_at(tmp_path / "packetgate.db")
    both = calls(wanted(READ, name="a"), wanted(WEATHER, city="Bern"))
    deciders = scripted(both, call(WRITE, name="a", text="x"), call(WRITE, name="a", text="y"), call(WRITE, name="b"))
    async with session(deciders, notebook, journal=journal, allow_write_tools=True, max_reinjections=1) as talk:
        packet = await talk.say("Read a, and check the weather")
        for answer in ("no", "yes"):
            await talk.ask("Write it")
            await talk.reply(answer)
        await talk.say("Write nothing to b")  # invalid: an argument is missing
    read, *others = await read_turns(journal, 1)
    assert (read.session_id, read.origin, read.asked) == ("session", "unknown", "Read a, and check the weather")
    assert abs(read.at - packet.header.created_at) < timedelta(minutes=1)
    reviewed = {"review_confidence": 0.9, "review_score": 0.9, "review_kind": "model, rule"}
    assert [*read.calls] == [one.call_id for one in packet.routing.all_calls]
    assert [*read.calls.values()] == [
        PastCall(READ, Status.EXECUTED, **reviewed),
        PastCall(WEATHER, Status.FAILED, **reviewed),
    ]
    denied, written, _ = ([*turn.calls.values()] for turn in others)
    assert denied == [PastCall(WRITE, Status.USER_DENIED, ApprovalOutcome.DENIED, **reviewed)]
    assert written == [PastCall(WRITE, Status.EXECUTED, ApprovalOutcome.APPROVED, **reviewed)]
    assert await read_turns(journal, 0) == []
    await journal.forget("session")
    assert await read_turns(journal, 1) == []


@pytest.mark.parametrize(
    ("event", "detail", "status", "approval"),
    [
        ("call_skipped", {"params": {}, "by": ""}, Status.SKIPPED, ApprovalOutcome.SKIPPED),
        ("call_expired", {"params": {}, "by": ""}, Status.SKIPPED, ApprovalOutcome.EXPIRED),
        ("call_answered", {"params": {}, "by": ""}, Status.SKIPPED, ApprovalOutcome.ANSWERED),
        ("call_edited", {"params": {}, "by": ""}, Status.APPROVED, ApprovalOutcome.EDITED),
        ("call_denied", {"params": {}, "by": "rule 1"}, Status.PENDING, None),
        ("call_skipped", {"detail": "a.b"}, Status.SKIPPED, None),
        ("call_unknown", {"detail": "a.b"}, Status.UNKNOWN, None),
        ("call_unfinished", {"detail": "a.b"}, Status.PENDING, None),
    ],
)
def test_the_status_after_each_event(event: str, detail: Any, status: Status, approval: ApprovalOutcome | None) -> None:
    (turn,) = turns_of(*entries_of("p", PastCall("a.b")), Entry(event, "s", "p", "c0", detail))
    assert turn.calls == {"c0": PastCall("a.b", status, approval)}


def test_turns_without_their_beginning_are_left_out() -> None:
    _, *later = entries_of("p", PastCall("a.b", Status.EXECUTED))
    assert turns_of(*later, Entry("turn_opened", "s", "q"), *entries_of("r")) == [
        PastTurn("s", NOON, "terminal", "Go on")
    ]


def test_outcomes_are_counted_by_tool() -> None:
    ends = [Status.EXECUTED, Status.EXECUTED, Status.FAILED, Status.USER_DENIED, Status.SKIPPED, Status.UNKNOWN]
    reviews = [0.9, 0.8, None, 0.4, None, None]
    made = [PastCall("ai.read", end, review_confidence=review) for end, review in zip(ends, reviews, strict=True)]
    early = PastTurn("s", NOON, "terminal", "Go on", {str(number): one for number, one in enumerate(made[:4])})
    late = PastTurn("s", NOON + timedelta(hours=1), "terminal", "", {"5": made[4], "6": made[5]})
    (usage,) = usage_by_tool([late, early])
    assert usage == ToolUsage("ai.read", 6, 2, 1, 1, 1, 1, (0.9 + 0.8 + 0.4) / 3, NOON + timedelta(hours=1))


def test_the_most_selected_tool_comes_first() -> None:
    failed = PastCall("b.often", Status.FAILED)
    used = PastCall("c.often", Status.EXECUTED)
    turns = turns_of(*entries_of("p1", PastCall("a.once"), failed, failed), *entries_of("p2", used, failed, used, used))
    assert [usage.tool for usage in usage_by_tool(turns)] == ["c.often", "b.often", "a.once"]
    assert usage_by_tool(turns)[2].review_confidence is None
    assert usage_by_tool([]) == usage_by_tool(turns_of(*entries_of("p1"))) == []


def test_only_decisions_of_a_person_teach_the_calibration() -> None:
    outcomes = [None, ApprovalOutcome.APPROVED, ApprovalOutcome.EDITED, ApprovalOutcome.DENIED, ApprovalOutcome.EXPIRED]
    scored = {"review_score": 0.9, "review_confidence": 0.8, "review_kind": "reflex, rule"}
    made = [PastCall("a.write", approval=outcome, **scored) for outcome in outcomes]
    turns = turns_of(*entries_of("p", *made, PastCall("a.write", approval=ApprovalOutcome.APPROVED)))
    assert [(one.kind, one.score, one.right) for one in answered_calls(turns)] == [
        ("reflex, rule", 0.9, True),
        ("reflex, rule", 0.9, False),
        ("reflex, rule", 0.9, False),
    ]
