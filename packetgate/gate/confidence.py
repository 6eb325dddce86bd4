"""The confidence gate: the status of a call after its review and its verdict."""

from typing import Any

from packetgate.state.base import Confidence, ConfidenceSource, Section
from packetgate.state.context import RoutingContext
from packetgate.state.routing import NO_OBJECTION, ToolCall, Verdict
from packetgate.state.transitions import ToolExecutionStatus

NOT_APPROVED_CAP = 0.5
"""Highest confidence shown for a call that the review did not approve."""


class CallReview(Section):
    """The judgement on one call."""

    call_id: str
    approved: bool
    confidence: Confidence
    confidence_source: ConfidenceSource = ConfidenceSource.RULE
    score: Confidence | None = None
    """The confidence before calibration; None if it is not calibrated."""
    score_source: ConfidenceSource | None = None
    evidence: dict[str, float] = {}
    is_improbable: bool = False
    """Whether the call is too improbable to ask the user about."""
    reasoning: str = ""

    @classmethod
    def unjudged(cls, call: ToolCall, reason: str) -> "CallReview":
        """Return a review that lets a call pass without a judgement."""
        source = ConfidenceSource.UNJUDGED
        return cls(call_id=call.call_id, approved=True, confidence=1.0, confidence_source=source, reasoning=reason)

    @classmethod
    def failed(cls, call: ToolCall, reason: str) -> "CallReview":
        """Return a review that approves nothing, because the call could not be judged."""
        return cls(call_id=call.call_id, approved=False, confidence=0.0, reasoning=reason)

    @property
    def uncalibrated(self) -> tuple[Confidence, ConfidenceSource]:
        """The confidence before calibration, and its source."""
        if self.score is None or self.score_source is None:
            return self.confidence, self.confidence_source
        return self.score, self.score_source

    def with_calibrated(self, confidence: Confidence) -> "CallReview":
        """Return the judgement with a calibrated confidence."""
        return self.changed(
            confidence=confidence,
            confidence_source=ConfidenceSource.CALIBRATED,
            score=self.confidence,
            score_source=self.confidence_source,
        )

    def passes(self, settings: RoutingContext) -> bool:
        """Return whether the call is approved with enough confidence."""
        return self.approved and self.confidence >= settings.confidence_threshold


def gated_call(call: ToolCall, review: CallReview, settings: RoutingContext, *, can_ask: bool) -> ToolCall:
    """Return the call with its review, and with the status that follows from review and verdict."""
    verdict = call.verdict or NO_OBJECTION
    confidence = review.confidence if review.approved else min(review.confidence, NOT_APPROVED_CAP)
    if verdict.effect == "refuse":
        status, why = ToolExecutionStatus.SKIPPED, verdict.why
    elif review.passes(settings) and verdict.effect == "ask" and can_ask:
        status, why = ToolExecutionStatus.AWAITING_APPROVAL, verdict.why
    elif review.passes(settings) and verdict.effect == "ask" and not verdict.or_dry_run:
        status, why = ToolExecutionStatus.SKIPPED, f"{verdict.why}, and there is no user to ask"
    elif review.passes(settings):
        status, why = ToolExecutionStatus.APPROVED, f"allowed by {verdict.by}" if verdict.by else ""
    else:
        below = f"{confidence:.2f} is below {settings.confidence_threshold:.2f}"
        problem = below if confidence < settings.confidence_threshold else "the review did not approve it"
        can_ask = can_ask and not review.is_improbable
        status, why = _status_of_stopped_call(call, problem, settings, verdict, can_ask=can_ask)
    fields: dict[str, Any] = {"evidence": {**call.evidence, **review.evidence}} if review.evidence else {}
    return call.changed(
        status=status,
        review_confidence=confidence,
        review_confidence_source=review.confidence_source,
        review_reasoning="; ".join(text for text in (review.reasoning, why) if text),
        **fields,
    )


def _status_of_stopped_call(
    call: ToolCall, problem: str, settings: RoutingContext, verdict: Verdict, *, can_ask: bool
) -> tuple[ToolExecutionStatus, str]:
    can_be_allowed = verdict.effect == "ask" or bool(verdict.by)
    if not settings.allows(call.risk) and not can_be_allowed:
        return ToolExecutionStatus.SKIPPED, f"{problem}, and {call.risk} tools are switched off"
    if settings.on_low_confidence == "ask" and can_ask:
        why = f"{problem}; {verdict.why}" if verdict.effect == "ask" else problem
        return ToolExecutionStatus.AWAITING_CONFIDENCE, why
    return ToolExecutionStatus.SKIPPED, problem
