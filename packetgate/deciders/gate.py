"""The confidence gate: set the status of each call after its review. A call without a review does not run."""

from collections.abc import Mapping

from packetgate.deciders.protocols import CallReview, Review
from packetgate.state.context import RoutingContext
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.execution.permission import Need
from packetgate.tools.usage.calibration import Calibration, curve_name

NOT_APPROVED_CAP = 0.5
FAILED_REVIEW = Review(reviews=(), decided_by="model")  # approves no call


def apply_gate(
    calls: tuple[ToolCall, ...], review: Review, context: RoutingContext, needs: Mapping[str, Need], *, can_ask: bool
) -> tuple[ToolCall, ...]:
    """Return the calls with their review and status.

    Args:
        needs: what each call needs besides an approving review, by call id.
        can_ask: whether there is a user to ask.
    """
    return tuple(
        _gated_call(call, review.for_call(call.call_id), context, needs[call.call_id], can_ask=can_ask)
        for call in calls
    )


def calibrate_review(review: Review, calibration: Calibration) -> Review:
    """Return the review with confidences calibrated by the user's answers or the model's evaluation."""
    judgements = []
    for judgement in review.reviews:
        curve = calibration.curves.get(curve_name(review.decided_by, judgement.confidence_source))
        judgements.append(judgement.with_calibrated(curve.at(judgement.confidence)) if curve else judgement)
    return review.changed(reviews=tuple(judgements))


def passes_gate(judgement: CallReview, context: RoutingContext) -> bool:
    """Return whether a call is approved with enough confidence."""
    return judgement.approved and judgement.confidence >= context.confidence_threshold


def _gated_call(
    call: ToolCall, judgement: CallReview, context: RoutingContext, need: Need, *, can_ask: bool
) -> ToolCall:
    confidence = judgement.confidence if judgement.approved else min(judgement.confidence, NOT_APPROVED_CAP)
    if need.kind == "refusal":
        status, why = ToolExecutionStatus.SKIPPED, f"it {need.why}"
    elif passes_gate(judgement, context):
        status, why = _status_above_threshold(need, can_ask=can_ask)
    else:
        below = f"{confidence:.2f} is below {context.confidence_threshold:.2f}"
        problem = below if confidence < context.confidence_threshold else "the review did not approve it"
        status, why = _status_of_stopped_call(call, problem, context, need, can_ask=can_ask)
    reasoning = "; ".join(text for text in (judgement.reasoning, why) if text)
    return call.changed(
        status=status,
        review_confidence=confidence,
        review_confidence_source=judgement.confidence_source,
        review_reasoning=reasoning,
        evidence={**call.evidence, **judgement.evidence},
    )


def _status_above_threshold(need: Need, *, can_ask: bool) -> tuple[ToolExecutionStatus, str]:
    if need.kind == "nothing":
        return ToolExecutionStatus.APPROVED, f"allowed by {need.allowed_by}" if need.allowed_by else ""
    if can_ask:
        return ToolExecutionStatus.AWAITING_APPROVAL, need.why
    if need.or_dry_run:
        return ToolExecutionStatus.APPROVED, ""
    return ToolExecutionStatus.SKIPPED, f"{need.why}, and there is no user to ask"


def _status_of_stopped_call(
    call: ToolCall, problem: str, context: RoutingContext, need: Need, *, can_ask: bool
) -> tuple[ToolExecutionStatus, str]:
    can_be_allowed = need.kind == "approval" or bool(need.allowed_by)
    if not context.allows(call.risk) and not can_be_allowed:
        return ToolExecutionStatus.SKIPPED, f"{problem}, and {call.risk} tools are switched off"
    if context.on_low_confidence == "ask" and can_ask:
        return ToolExecutionStatus.AWAITING_CONFIDENCE, problem
    return ToolExecutionStatus.SKIPPED, problem
