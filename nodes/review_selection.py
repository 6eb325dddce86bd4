"""The gate: each call is judged, and only what passes goes on."""

from langgraph.runtime import Runtime

from deciders.gate import gated, passes
from deciders.protocols import Review, Reviewer
from state.context import RoutingContext, routing_context
from state.packet import CognitionPacket, PacketUpdate
from state.sections import Evaluation, Reflection
from tools.approval.waiting import asked, nobody_to_ask
from tools.catalogue.toolbox import Toolbox

STAGE = "review_selection"


async def review_selection(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, decider: Reviewer, toolbox: Toolbox
) -> PacketUpdate:
    """Have the calls reviewed, all in one go."""
    context = routing_context(runtime.context)
    review = await decider.review(packet, await toolbox.catalogue(), context)
    return reviewed(packet, context, review, can_ask=not nobody_to_ask(runtime.execution_info))


def reviewed(packet: CognitionPacket, context: RoutingContext, review: Review, *, can_ask: bool) -> PacketUpdate:
    """Return what a review changes."""
    calls = gated(packet.routing.calls, review, context, can_ask=can_ask)
    judgements = [
        Evaluation(
            name="selection_review",
            subject=call.call_id,
            score=call.review_confidence,
            label="approved" if passes(review.of(call.call_id), context) else "not_approved",
            explanation=call.review_reasoning,
        )
        for call in calls
    ]
    return {
        "tool_routing": packet.routing.with_calls(calls),
        **asked(packet, context, asks=any(call.status.awaits_user for call in calls)),
        "metrics": packet.metrics.spent(STAGE, review.usage),
        "reasoning": packet.reasoning.evaluated(*judgements).noted(
            Reflection(
                step=STAGE,
                summary="; ".join(
                    f"{call.tool_name}: {call.status.replace('_', ' ')}, {call.review_reasoning}" for call in calls
                ),
                confidence=min((call.review_confidence for call in calls), default=0.0),
                confidence_source=review.confidence_source,
                decided_by=review.decided_by,
            )
        ),
    }
