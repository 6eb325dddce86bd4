"""Reviews by a decision endpoint: an unusable answer counts as 0.0, and the call does not run."""

import json
from typing import Any

import pytest
from support.scripted_openai import ScriptedOpenAI
from support.scripted_replies import HttpError, Raw, Reply

from packetgate.router import create_router
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.toolsets.servers.functions import reads

CALL = {"name": "call_1", "type": "predicate"}


@reads
def list_late_orders() -> list[str]:
    """List the orders that are late."""
    return ["A-17", "B-4"]


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
@pytest.mark.reflex
def test_a_decision_endpoint_reviews(
    scripted_openai: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch, form: str, reply: Reply, confidence: float
) -> None:
    key = "key-of-the-endpoint"
    for name, value in {"BASE_URL": scripted_openai.base_url, "API_KEY": key}.items():
        monkeypatch.setenv(f"OPENAI_{name}", value)
    monkeypatch.setenv("NO_PROXY", "*")
    scripted_openai.script(reply)
    with create_router(tools=[list_late_orders], prime=f"{form}:d") as router:
        turn = router.invoke("Which orders are late?")
    (call,) = turn.calls
    runs = confidence >= 0.7
    assert call.review_confidence == pytest.approx(confidence)
    assert (call.status is ToolExecutionStatus.EXECUTED, turn.question is None) == (runs, runs)
    assert key not in turn.packet.model_dump_json()
    (request,) = scripted_openai.requests
    assert "Which orders are late?" in request["input" if form == "decisions" else "state"]
    assert scripted_openai.headers[0]["authorization"] == f"Bearer {key}"
