"""`packetgate calibrate`: recorded answers determine which calls run without a question."""

import asyncio
import json
import re

import pytest
from support.command_line import CommandLine
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import Raw
from support.usage import entries_of

from packetgate.graph.journal import open_journal
from packetgate.graph.settings import Settings
from packetgate.state.sections import ApprovalOutcome


def answer(cli: CommandLine, kind: str, score: float, approvals: int, denials: int) -> None:
    """Record answers as turns do."""
    outcomes = [ApprovalOutcome.APPROVED] * approvals + [ApprovalOutcome.DENIED] * denials
    entries = entries_of(f"{kind}-{score}", *outcomes, kind=kind, score=score)
    asyncio.run(open_journal(Settings(home=cli.home)).record(*entries))


@pytest.mark.slow
def test_denied_calls_make_the_gate_ask_until_the_calibration_is_undone(cli: CommandLine) -> None:
    (cli.folder / "plan.txt").write_text("dig")
    assert cli.run("ask", "Read plan.txt").status == 0
    assert "0 answers so far" in cli.run("calibrate").out
    answer(cli, "reflex, calibrated", 0.8, approvals=5, denials=45)
    looked = cli.run("calibrate", "--dry-run").out
    assert "the review's own confidence: average error 0.70 of 50 answers" in looked
    assert re.search(r"fitted curves, on held-out answers: average error 0\.0\d of 50 answers", looked)
    assert "not stored, because of --dry-run" in looked
    assert cli.run("ask", "Read plan.txt").status == 0
    assert "stored" in cli.run("calibrate").out
    asked = cli.run("ask", "Read plan.txt")
    assert asked.status == 3
    assert "confidence 0.1" in asked.out + asked.err
    assert cli.run("calibrate", "--undo").status == 0
    assert cli.run("ask", "Read plan.txt").status == 0


def test_a_decision_endpoint_is_calibrated_by_answers_about_its_own_reviews(
    cli: CommandLine, scripted_openai: ScriptedOpenAI
) -> None:
    (cli.folder / "plan.txt").write_text("dig")
    reviewed = {"name": "call_1", "type": "predicate", "probability": 0.93}
    body = json.dumps({"model": "d", "answers": [reviewed], "usage": {"input_tokens": 7}})
    statuses = []
    for kind in ("model, token_probability", "model, decision_probability"):
        answer(cli, kind, 0.93, approvals=5, denials=45)
        assert "stored" in cli.run("calibrate").out
        scripted_openai.script(Raw(body))
        done = cli.run(
            "ask", "Read plan.txt", "--prime", "decisions:d", PACKETGATE_PRIME_BASE_URL=scripted_openai.base_url
        )
        statuses.append(done.status)
    assert statuses == [0, 3]
