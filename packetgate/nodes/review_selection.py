"""The gate: review each call; only approved calls continue."""

from collections.abc import Awaitable, Callable

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from packetgate.deciders.commands import COMMAND
from packetgate.deciders.packets import facts_of, update_of
from packetgate.deciders.protocols import Review, Reviewer
from packetgate.gate.confidence import NOT_APPROVED_CAP, CallReview
from packetgate.gate.gate import Gate
from packetgate.gate.journal import CALL_REVIEWED, entry_for
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, PacketgateError
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Evaluation, Reflection
from packetgate.tools.calibration import Calibration, curve_name
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox

_STAGE = "review_selection"

CalibrationSource = Callable[[CognitionPacket, BaseStore | None], Awaitable[Calibration]]
"""Returns the curves of the user's answers and of the model's evaluation."""


async def review_selection(
    packet: CognitionPacket,
    runtime: Runtime[RoutingContext],
    *,
    decider: Reviewer,
    toolbox: Toolbox,
    gate: Gate,
    calibration: CalibrationSource | None = None,
) -> PacketUpdate:
    """Review all calls of the pass in one request, and calibrate the confidence. A failed review approves no call."""
    catalogue, settings = await toolbox.catalogue(), packet.governance.settings
    curves = await calibration(packet, runtime.store) if calibration else Calibration()
    review = await _review(packet, decider, catalogue, curves)
    facts = facts_of(packet, catalogue, runtime.execution_info)
    proposal = await gate.propose(packet.routing.calls, facts, {one.call_id: one for one in review.reviews})
    evaluations = tuple(_evaluation(call, review, settings) for call in proposal.calls)
    entries = []
    for call, evaluation in zip(proposal.calls, evaluations, strict=True):
        detail = evaluation.model_dump(mode="json", exclude={"name", "subject"})
        detail |= {"by": review.decided_by or "", "tool": call.tool_name, "status": call.status.value}
        entries.append(entry_for(packet.header, CALL_REVIEWED, call.call_id, detail))
    return {
        **update_of(packet, proposal.with_reviews(tuple(entries))),
        "metrics": packet.metrics.with_tokens(_STAGE, review.usage).with_errors(*review.errors(_STAGE)),
        "reasoning": packet.reasoning.changed(evaluations=packet.reasoning.evaluations + evaluations).with_reflections(
            Reflection(
                step=_STAGE,
                summary="; ".join(map(_summary, proposal.calls)),
                confidence=min((call.review_confidence for call in proposal.calls), default=0.0),
                confidence_source=review.confidence_source,
                decided_by=review.decided_by,
            )
        ),
    }


async def _review(packet: CognitionPacket, decider: Reviewer, catalogue: Catalogue, calibration: Calibration) -> Review:
    if packet.routing.calls and packet.content.command:
        return Review.approving(packet.routing.calls, COMMAND)
    try:
        review = await decider(packet, catalogue, packet.governance.settings)
        return review.calibrated(calibration.curves)
    except GraphBubbleUp:  # an interrupt of the user's own decider
        raise
    except Exception as error:  # noqa: BLE001  from a model, or from the user's own decider
        reason = str(error) if isinstance(error, PacketgateError) else f"{type(error).__name__}: {error}"
        usage = error.usage if isinstance(error, DecisionError) else TokenUsage()
        failed = f"the review failed: {reason}"
        reviews = tuple(CallReview.failed(call, failed) for call in packet.routing.calls)
        return Review(reviews=reviews, decided_by="model", fallback_reason=failed, usage=usage)


def _evaluation(call: ToolCall, review: Review, settings: RoutingContext) -> Evaluation:
    judgement = review.for_call(call)
    score, source = judgement.uncalibrated
    return Evaluation(
        name="selection_review",
        subject=call.call_id,
        score=call.review_confidence,
        label="approved" if judgement.passes(settings) else "not_approved",
        explanation=call.review_reasoning,
        stated=score if judgement.approved else min(score, NOT_APPROVED_CAP),
        kind=curve_name(review.decided_by, source),
    )


def _summary(call: ToolCall) -> str:
    failed = f" in a dry run ({call.result.error})" if call.result else ""
    return f"{call.tool_name}: {call.status.replace('_', ' ')}{failed}, {call.review_reasoning}"
