"""A question accepts one answer, across processes, forks and replays."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.counting import FINISHED, REFUSED, asked, events, race
from support.graphs import Session, session
from support.notebook import Notebook
from support.scripted_deciders import call, none, scripted

from packetgate.connectors.opening import open_sessions
from packetgate.connectors.turn import Asked, Reply
from packetgate.gate.answers import ALREADY_ANSWERED
from packetgate.gate.journal import STARTED, CallLog, Journal
from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.state.transitions import ToolExecutionStatus

ROUNDS = 4
APPEND = 'Append "x" to log.txt'
WRITE = call("notebook.write_note", name="a", text="avocado")
ASK = "Write avocado to a"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "root").mkdir()
    return Settings(home=tmp_path / "home", root=tmp_path / "root")


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_only_one_of_two_concurrent_approvals_counts(
    request: pytest.FixtureRequest, settings: Settings, database: str
) -> None:
    url = request.getfixturevalue("postgres") if database == "postgres" else None
    settings = settings.model_copy(update={"database_url": url})
    for number in range(1, ROUNDS + 1):
        name = f"round {number}"
        await asked(settings, name, APPEND)
        ends = await race(settings, name, "yes", "yes")
        assert (settings.root / "log.txt").read_text() == "x\n" * number, name
        assert min(ends) == FINISHED < max(ends) <= REFUSED, ends
        assert await final_status(settings, name) is ToolExecutionStatus.EXECUTED


async def final_status(settings: Settings, name: str) -> ToolExecutionStatus:
    """Return the status of the call in a session's finished turn."""
    async with open_sessions(settings) as sessions:
        state = await sessions.state(name)
    assert (state.question, state.is_unfinished) == (None, False)
    (done,) = state.packet.routing.all_calls
    return done.status


@pytest.mark.slow
async def test_a_question_claimed_by_a_dead_process_is_asked_again(settings: Settings) -> None:
    """If the process dies between claim and checkpoint, the answer is lost, and nothing runs."""
    first = await asked(settings, "s", APPEND)
    assert await open_journal(settings).claim(first.question["question_id"])
    again = (await events(settings, "s", Reply("yes")))[-1]
    while isinstance(again, Asked):
        assert not (settings.root / "log.txt").exists()
        assert again.question["problem"] == ALREADY_ANSWERED
        again = (await events(settings, "s", Reply("yes")))[-1]
    assert (settings.root / "log.txt").read_text() == "x\n"
    assert await final_status(settings, "s") is ToolExecutionStatus.EXECUTED


async def question_after_kill(talk: Session, journal: Journal) -> dict[str, Any]:
    """Kill a process during the approved call; return the question that the next process asks."""
    await talk.ask(ASK)
    packet = await talk.until_stopped(Reply("yes"))
    (approved,) = packet.routing.calls
    assert talk.hub is not None
    spec = (await talk.hub.catalogue())[approved.tool_name]
    log = CallLog(approved, packet.header, spec, packet.governance.approvals[0].question_id, journal)
    assert await (await log.read()).start()
    out = await talk.graph.ainvoke(None, talk.config, context=talk.context)
    (asked,) = out["__interrupt__"]
    assert out["tool_routing"].calls[0].status is ToolExecutionStatus.AWAITING_APPROVAL
    return dict(asked.value)


STOPPING: dict[str, Any] = {"interrupt_before": ["execute_tool"], "allow_write_tools": True}
DOUBT = r"it was started at 20\d\d-\d\d-\d\d .* UTC, and it is not known whether it finished"


@pytest.mark.slow
@pytest.mark.parametrize(("word", "runs"), [("yes", 1), ("no", 0)])
async def test_the_journal_contains_both_runs_of_a_write_interrupted_by_a_crash(
    settings: Settings, notebook: Notebook, word: str, runs: int
) -> None:
    journal = open_journal(settings)
    async with session(scripted(WRITE, none(), none()), notebook, journal=journal, **STOPPING) as talk:
        question = await question_after_kill(talk, journal)
        (request,), (config,) = question["action_requests"], question["review_configs"]
        assert re.search(rf"{DOUBT}: run it again\?", request["description"])
        assert config["allowed_decisions"] == ["approve", "reject", "respond"]
        assert notebook.called == []
        await talk.until_stopped(Reply(word))
        out = await talk.graph.ainvoke(None, talk.config, context=talk.context)
    (call,) = out["tool_routing"].all_calls
    assert call.status is (ToolExecutionStatus.EXECUTED if runs else ToolExecutionStatus.UNKNOWN)
    assert runs or re.search(DOUBT, out["response"].candidate)
    assert notebook.called == ["write_note"] * runs
    rows = await journal.call_entries(out["header"].packet_id, call.call_id)
    starts = [row.entry.detail for row in rows if row.entry.event == STARTED]
    assert len(starts) == runs + 1
    assert len({one["idempotency_key"] for one in starts}) == 1, "a second attempt of the same call"


async def test_a_call_that_may_have_run_cannot_be_edited(settings: Settings, notebook: Notebook) -> None:
    journal = open_journal(settings)
    async with session(scripted(WRITE), notebook, journal=journal, **STOPPING) as talk:
        await question_after_kill(talk, journal)
        edit = {"type": "edit", "edited_action": {"name": "notebook.write_note", "args": {"name": "b", "text": "b"}}}
        asked = await talk.ask_again({"decisions": [edit]})
    assert "cannot be edited: it was started at" in asked.question["problem"]
    assert notebook.called == []
