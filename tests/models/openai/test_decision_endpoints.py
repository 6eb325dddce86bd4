"""Reviews by a decision endpoint: an unusable answer counts as 0.0, and the call does not run."""

import json
from typing import Any

import pytest
from support.command_line import CommandLine
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Raw, Reply

CALL = {"name": "call_1", "type": "predicate"}


def answers(answers: Any) -> Raw:
    return Raw(json.dumps({"model": "d", "answers": answers, "usage": {"input_tokens": 7, "output_tokens": None}}))


@pytest.mark.parametrize(
    ("form", "reply", "confidence"),
    [
        ("decisions", answers([{**CALL, "probability": 0.7}]), 0.7),
        ("decisions", answers([{**CALL, "probability": 0.69}]), 0.69),
        ("decisions", answers([{**CALL, "probability": 0.2}]), 0.5),
        ("decisions", answers([{"name": "call_1", "type": "refusal"}]), 0.0),
        ("decisions", answers([{**CALL, "name": "call_2", "probability": 1}]), 0.0),
        ("decisions", answers([{**CALL, "probability": 1.01}]), 0.0),
        ("decisions", answers([{**CALL, "probability": float("nan")}]), 0.0),
        ("decisions", answers([{**CALL, "probability": "yes"}]), 0.0),
        ("decisions", answers(None), 0.0),
        ("decisions", Raw("<html>", "text/html"), 0.0),
        ("decisions", HttpError(500), 0.0),
        ("systemone", answers({"call_1": {"type": "noul", "noul": 0.93}}), 0.93),
        ("systemone", answers({"call_1": {"type": "noul", "noul": 0.2}}), 0.5),
        ("systemone", answers({"call_2": {"type": "noul", "noul": 1}}), 0.0),
        ("systemone", answers({"call_1": {"type": "verdict", "noul": 1}}), 0.0),
    ],
)
def test_a_decision_endpoint_reviews(
    cli: CommandLine, scripted_openai: ScriptedOpenAI, form: str, reply: Reply, confidence: float
) -> None:
    scripted_openai.script(reply)
    variables = {"OPENAI_BASE_URL": scripted_openai.base_url, "OPENAI_API_KEY": "key-of-the-endpoint", "NO_PROXY": "*"}
    outcome = cli.run("ask", "Read plan.txt", "--prime", f"{form}:d", "--json", **variables)
    runs = confidence >= 0.7
    assert (outcome.status, outcome.err) == (0 if runs else 3, "")
    routing = json.loads(outcome.out)["tool_routing"]
    (call,) = [*routing["past_calls"], *routing["calls"]]
    assert call["review_confidence"] == pytest.approx(confidence)
    assert (call["status"] == "executed") is runs
    assert "key-of-the-endpoint" not in outcome.out
    (request,) = scripted_openai.requests
    assert "Read plan.txt" in request["input" if form == "decisions" else "state"]
    assert scripted_openai.headers[0]["authorization"] == "Bearer key-of-the-endpoint"
