"""The status of a call after its review."""

import pytest
from support.packets import CONTEXT, done, needs

from packetgate.deciders.gate import FAILED_REVIEW, NOT_APPROVED_CAP, apply_gate
from packetgate.deciders.protocols import CallReview, Review
from packetgate.state.context import RoutingContext
from packetgate.state.origins import Origin, OriginKind
from packetgate.state.routing import Risk, ToolCall
from packetgate.state.transitions import ToolExecutionStatus

S = ToolExecutionStatus
ON = {"allow_write_tools": True, "allow_execute_tools": True}


def judged(confidence: float, risk: Risk, *, approved: bool = True, can_ask: bool = True, **context):
    call = done("x.y", S.PENDING).model_copy(update={"risk": risk})
    one = CallReview(call_id=call.call_id, approved=approved, confidence=confidence, reasoning="so")
    review = Review(reviews=(one,), confidence=confidence, decided_by="model")
    settings = RoutingContext(**context)
    (result,) = apply_gate((call,), review, settings, needs((call,), settings), can_ask=can_ask)
    return result


@pytest.mark.parametrize(
    ("confidence", "risk", "can_ask", "context", "status"),
    [
        (0.70, Risk.READ, True, {}, S.APPROVED),
        (0.69, Risk.READ, True, {}, S.AWAITING_CONFIDENCE),
        (0.69, Risk.READ, False, {}, S.SKIPPED),
        (0.69, Risk.READ, True, {"on_low_confidence": "skip"}, S.SKIPPED),
        # writes are switched off: above the threshold the call is a dry run; below, it is skipped without a question
        (0.70, Risk.WRITE, True, {}, S.APPROVED),
        (0.69, Risk.WRITE, True, {}, S.SKIPPED),
        # writes are switched on: a call above the threshold needs approval, even with confidence 1
        (1.00, Risk.WRITE, True, ON, S.AWAITING_APPROVAL),
        (1.00, Risk.EXECUTE, True, ON, S.AWAITING_APPROVAL),
        (1.00, Risk.WRITE, False, ON, S.SKIPPED),
        (0.69, Risk.WRITE, True, ON, S.AWAITING_CONFIDENCE),
        (0.69, Risk.WRITE, False, ON, S.SKIPPED),
        (0.0, Risk.WRITE, True, {**ON, "confidence_threshold": 0.0}, S.AWAITING_APPROVAL),
    ],
)
def test_the_status_of_a_reviewed_call(
    confidence: float, risk: Risk, can_ask: bool, context: dict, status: ToolExecutionStatus
):
    call = judged(confidence, risk, can_ask=can_ask, **context)
    assert (call.status, call.review_confidence) == (status, confidence)
    assert (call.review_reasoning == "so") is (status is S.APPROVED)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("stated", [0.0, 0.5, 1.0])
def test_a_call_without_approval_never_runs(stated: float, threshold: float):
    """No threshold lets a call pass that the review did not approve, whatever its confidence."""
    for risk, context in [(Risk.READ, {}), (Risk.WRITE, {}), (Risk.WRITE, ON)]:
        call = judged(stated, risk, approved=False, confidence_threshold=threshold, **context)
        assert call.status is not S.APPROVED
        assert call.status is not S.AWAITING_APPROVAL
    unjudged = done("x.y", S.PENDING)
    settings = RoutingContext(confidence_threshold=threshold)
    (call,) = apply_gate((unjudged,), FAILED_REVIEW, settings, needs((unjudged,), settings), can_ask=False)
    assert call.status is S.SKIPPED


@pytest.mark.parametrize(("stated", "counts"), [(1.0, 0.5), (0.5, 0.5), (0.2, 0.2), (0.0, 0.0)])
def test_the_confidence_of_a_call_without_approval_is_limited(stated: float, counts: float):
    assert judged(stated, Risk.READ, approved=False).review_confidence == counts <= NOT_APPROVED_CAP


def test_a_failed_review_counts_as_zero():
    calls = (done("x.y", S.PENDING), done("x.z", S.PENDING))
    for call in apply_gate(calls, FAILED_REVIEW, CONTEXT, needs(calls, CONTEXT), can_ask=True):
        assert (call.review_confidence, call.status) == (0.0, S.AWAITING_CONFIDENCE)
        assert "the review failed" in call.review_reasoning


def flagged(**context) -> ToolCall:
    origin = Origin(kind=OriginKind.TEXT, tool="mail.read", is_flagged=True, why="this appears only in text")
    call = done("x.y", S.PENDING).model_copy(update={"risk": Risk.READ, "provenance": {"url": origin}})
    one = CallReview(call_id=call.call_id, approved=True, confidence=1.0, reasoning="so")
    review = Review(reviews=(one,), confidence=1.0, decided_by="model")
    (result,) = apply_gate((call,), review, CONTEXT, needs((call,), CONTEXT), **context)
    return result


def test_a_read_with_a_flagged_argument_asks_the_user():
    call = flagged(can_ask=True)
    assert call.status is S.AWAITING_APPROVAL
    assert "`url`: this appears only in text" in call.review_reasoning


def test_without_a_user_to_ask_a_flagged_read_is_refused():
    call = flagged(can_ask=False)
    assert call.status is S.SKIPPED
    assert "this appears only in text, and there is no user to ask" in call.review_reasoning
