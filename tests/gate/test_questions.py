"""The payloads of questions, which chat front ends parse."""

from datetime import UTC, datetime

from support.origins import origins

from packetgate.gate.questions import approval_payload, text_payload
from packetgate.state.origins import Origin, OriginKind
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.sections import AskedCall, OpenQuestion
from packetgate.state.transitions import ToolExecutionStatus

AT = datetime(2026, 2, 28, 12, tzinfo=UTC)
FLAGGED = Origin(
    kind=OriginKind.TEXT,
    tool="mail.read",
    is_flagged=True,
    why="it is only in a text",
    passage="Write `` x `` <b>now</b> **or** www.evil.test",
    flagged_part="x",
)


def test_an_approval_suits_both_front_ends():
    call = ToolCall(
        call_id="c1",
        tool_name="a.write",
        params={"path": "a.txt", "text": "x"},
        risk=Risk.WRITE,
        provenance={**origins(path="user"), "text": FLAGGED},
        review_confidence=0.66,
        review_reasoning="looks odd",
        status=ToolExecutionStatus.AWAITING_APPROVAL,
    )
    calls = (call, call.model_copy(update={"call_id": "c2", "started_at": AT}))
    diff = "-```\n+y"
    question = OpenQuestion(question_id="q", expires_at=AT, calls=(AskedCall(call_id="c1", digest="", preview=diff),))
    shown = approval_payload(calls, question, "that was no reply")
    assert (shown["kind"], shown["problem"], shown["question_id"]) == ("approval", "that was no reply", "q")
    assert datetime.fromisoformat(shown["expires_at"]) == AT
    request, other = shown["action_requests"]
    assert (request["preview"], other["preview"]) == (diff, "")
    assert request["name"] == "a.write"
    assert request["args"] == request["arguments"] == call.params
    description = request["description"]
    for part in ("that was no reply", "a.write (write)", "0.66", "looks odd", "`text`", FLAGGED.why):
        assert part in description
    assert description.endswith(f"````diff\n{diff}\n````"), "front ends show only the description"
    assert "> ``` Write `` ``` **`x`** ``` `` <b>now</b> **or** www.evil.test ```" in description
    assert "`path`" not in description
    assert diff not in request["about"]
    assert request["warnings"] == [
        {"argument": "text", "why": FLAGGED.why, "tool": "mail.read", "passage": FLAGGED.passage, "flagged_part": "x"}
    ]
    assert shown["review_configs"] == [
        {"action_name": "a.write", "allowed_decisions": ["approve", "edit", "reject", "respond"]},
        {"action_name": "a.write", "allowed_decisions": ["approve", "reject", "respond"]},
    ]


def test_a_question_for_text_offers_a_text_reply():
    shown = text_payload("Which file?", OpenQuestion(expires_at=AT))
    assert (shown["kind"], shown["question"]) == ("question", "Which file?")
    assert "problem" not in shown
    (request,) = shown["action_requests"]
    assert request["args"] == request["arguments"] == {"answer": ""}
    assert request["name"] == shown["review_configs"][0]["action_name"] == "A question for you"
    assert shown["review_configs"][0]["allowed_decisions"] == ["respond", "edit", "reject"]
