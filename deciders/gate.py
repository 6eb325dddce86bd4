"""The confidence gate: what a review means for each call. It fails closed."""

from deciders.protocols import CallReview, Review
from state.context import RoutingContext
from state.routing import Risk, ToolCall, ToolExecutionStatus

NOT_APPROVED_CAP = 0.5


def gated(
    calls: tuple[ToolCall, ...], review: Review, context: RoutingContext, *, can_ask: bool
) -> tuple[ToolCall, ...]:
    """Return the calls with the review on them and the status it gives them. A call nobody judged counts 0.0."""
    by_id = {one.call_id: one for one in review.reviews}
    return tuple(_judged(call, by_id.get(call.call_id), context, can_ask=can_ask) for call in calls)


def failed_review(problem: str) -> Review:
    """Return the review that stands for one that could not be made: no call judged, 0.0."""
    return Review(reviews=(), confidence=0.0, reasoning=problem, decided_by="model")


def _judged(call: ToolCall, review: CallReview | None, context: RoutingContext, *, can_ask: bool) -> ToolCall:
    if review is None:
        review = CallReview(call_id=call.call_id, approved=False, confidence=0.0, reasoning="the review failed")
    confidence = review.confidence if review.approved else min(review.confidence, NOT_APPROVED_CAP)
    status, why = _status(call, confidence, context, can_ask=can_ask)
    return call.model_copy(
        update={
            "review_confidence": confidence,
            "review_confidence_source": review.confidence_source,
            "review_reasoning": "; ".join(text for text in (review.reasoning, why) if text),
            "status": status,
        }
    )


def _status(
    call: ToolCall, confidence: float, context: RoutingContext, *, can_ask: bool
) -> tuple[ToolExecutionStatus, str]:
    switched_on = context.allows(call.risk)
    if confidence < context.confidence_threshold:
        short = f"{confidence:.2f} is below {context.confidence_threshold:.2f}"
        if not switched_on:
            return ToolExecutionStatus.SKIPPED, f"{short}, and {call.risk} tools are switched off"
        if context.on_low_confidence == "ask" and can_ask:
            return ToolExecutionStatus.AWAITING_CONFIDENCE, short
        return ToolExecutionStatus.SKIPPED, short
    if call.risk is not Risk.READ and switched_on:
        if can_ask:
            return ToolExecutionStatus.AWAITING_APPROVAL, f"{call.risk} tools need your approval"
        return ToolExecutionStatus.SKIPPED, f"{call.risk} tools need approval, and nobody can be asked"
    return ToolExecutionStatus.APPROVED, ""
