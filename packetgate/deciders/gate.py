"""The confidence gate: what a review means for each call. It fails closed."""

from collections.abc import Mapping

from packetgate.deciders.protocols import CallReview, Review
from packetgate.state.context import RoutingContext
from packetgate.state.routing import ToolCall
from packetgate.state.sections import DecidedBy
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.execution.permission import Need
from packetgate.tools.usage.calibration import Calibration, kind_of

NOT_APPROVED_CAP = 0.5
FAILED_REVIEW = Review(reviews=(), decided_by="model")
"""What stands for a review that could not be made: no call judged, 0.0."""


def gated(
    calls: tuple[ToolCall, ...],
    review: Review,
    context: RoutingContext,
    needs: Mapping[str, Need],
    *,
    can_ask: bool,
) -> tuple[ToolCall, ...]:
    """Return the calls with the review on them and the status it gives them. A call nobody judged counts 0.0.

    `needs` are what the calls need beside a review that passes them, by the id of the call.
    """
    return tuple(
        _judged(call, review.of(call.call_id), context, needs[call.call_id], can_ask=can_ask) for call in calls
    )


def calibrated(review: Review, calibration: Calibration) -> Review:
    """Return the review with its confidences as the user's answers, or the model's evaluation, calibrate them."""
    return review.judged(tuple(_calibrated(one, review.decided_by, calibration) for one in review.reviews))


def _calibrated(judgement: CallReview, decided_by: DecidedBy, calibration: Calibration) -> CallReview:
    kind = kind_of(decided_by, judgement.confidence_source)
    curve = calibration.curves.get(kind)
    return judgement.calibrated(curve.at(judgement.confidence)) if curve else judgement


def passes(judgement: CallReview, context: RoutingContext) -> bool:
    """Whether a call may run for this judgement: approved, however low the threshold, and as surely as it asks."""
    return judgement.approved and judgement.confidence >= context.confidence_threshold


def _judged(call: ToolCall, judgement: CallReview, context: RoutingContext, need: Need, *, can_ask: bool) -> ToolCall:
    confidence = judgement.confidence if judgement.approved else min(judgement.confidence, NOT_APPROVED_CAP)
    if need.kind == "refusal":
        status, why = ToolExecutionStatus.SKIPPED, f"it {need.why}"
    elif passes(judgement, context):
        status, why = _passed(need, can_ask=can_ask)
    else:
        below = f"{confidence:.2f} is below {context.confidence_threshold:.2f}"
        short = below if confidence < context.confidence_threshold else "the review did not approve it"
        status, why = _stopped(call, short, context, can_ask=can_ask)
    reasoning = "; ".join(text for text in (judgement.reasoning, why) if text)
    return call.reviewed(status, confidence, judgement.confidence_source, reasoning, judgement.evidence)


def _passed(need: Need, *, can_ask: bool) -> tuple[ToolExecutionStatus, str]:
    if need.kind == "nothing":
        return ToolExecutionStatus.APPROVED, f"allowed by {need.by}" if need.by else ""
    if can_ask:
        return ToolExecutionStatus.AWAITING_APPROVAL, need.why
    return ToolExecutionStatus.SKIPPED, f"{need.why}, and nobody can be asked"


def _stopped(call: ToolCall, short: str, context: RoutingContext, *, can_ask: bool) -> tuple[ToolExecutionStatus, str]:
    if not context.allows(call.risk):
        return ToolExecutionStatus.SKIPPED, f"{short}, and {call.risk} tools are switched off"
    if context.on_low_confidence == "ask" and can_ask:
        return ToolExecutionStatus.AWAITING_CONFIDENCE, short
    return ToolExecutionStatus.SKIPPED, short
