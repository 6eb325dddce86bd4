"""The confidence gate: a call's status after its review. It fails closed."""

from collections.abc import Mapping

from packetgate.deciders.protocols import CallReview, Review
from packetgate.state.context import RoutingContext
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.execution.permission import Need
from packetgate.tools.usage.calibration import Calibration, curve_name

NOT_APPROVED_CAP = 0.5
FAILED_REVIEW = Review(reviews=(), decided_by="model")  # used if no review could be made


def apply_gate(
    calls: tuple[ToolCall, ...], review: Review, context: RoutingContext, needs: Mapping[str, Need], *, can_ask: bool
) -> tuple[ToolCall, ...]:
    """Return the calls with their review and status. `needs` are what calls need besides the review, by call id."""
    return tuple(_gated(call, review.of(call.call_id), context, needs[call.call_id], can_ask=can_ask) for call in calls)


def calibrated(review: Review, calibration: Calibration) -> Review:
    """Return the review with confidences calibrated by the user's answers or the model's evaluation."""
    reviews = []
    for one in review.reviews:
        curve = calibration.curves.get(curve_name(review.decided_by, one.confidence_source))
        reviews.append(one.calibrated(curve.at(one.confidence)) if curve else one)
    return review.changed(reviews=tuple(reviews))


def passes(judgement: CallReview, context: RoutingContext) -> bool:
    """Return whether a call is approved with enough confidence."""
    return judgement.approved and judgement.confidence >= context.confidence_threshold


def _gated(call: ToolCall, judgement: CallReview, context: RoutingContext, need: Need, *, can_ask: bool) -> ToolCall:
    confidence = judgement.confidence if judgement.approved else min(judgement.confidence, NOT_APPROVED_CAP)
    if need.kind == "refusal":
        status, why = ToolExecutionStatus.SKIPPED, f"it {need.why}"
    elif passes(judgement, context):
        status, why = _passed(need, can_ask=can_ask)
    else:
        below = f"{confidence:.2f} is below {context.confidence_threshold:.2f}"
        problem = below if confidence < context.confidence_threshold else "the review did not approve it"
        status, why = _stopped(call, problem, context, can_ask=can_ask)
    reasoning = "; ".join(text for text in (judgement.reasoning, why) if text)
    return call.changed(
        status=status,
        review_confidence=confidence,
        review_confidence_source=judgement.confidence_source,
        review_reasoning=reasoning,
        evidence={**call.evidence, **judgement.evidence},
    )


def _passed(need: Need, *, can_ask: bool) -> tuple[ToolExecutionStatus, str]:
    if need.kind == "nothing":
        return ToolExecutionStatus.APPROVED, f"allowed by {need.by}" if need.by else ""
    if can_ask:
        return ToolExecutionStatus.AWAITING_APPROVAL, need.why
    return ToolExecutionStatus.SKIPPED, f"{need.why}, and there is no user to ask"


def _stopped(
    call: ToolCall, problem: str, context: RoutingContext, *, can_ask: bool
) -> tuple[ToolExecutionStatus, str]:
    if not context.allows(call.risk):
        return ToolExecutionStatus.SKIPPED, f"{problem}, and {call.risk} tools are switched off"
    if context.on_low_confidence == "ask" and can_ask:
        return ToolExecutionStatus.AWAITING_CONFIDENCE, problem
    return ToolExecutionStatus.SKIPPED, problem
