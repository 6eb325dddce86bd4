"""What happens when a stage fails."""

from langgraph.runtime import Runtime

from deciders.gate import failed_review
from nodes.review_selection import STAGE, reviewed
from state.context import RoutingContext, routing_context
from state.packet import CognitionPacket, PacketUpdate
from state.sections import StageError
from tools.approval.waiting import nobody_to_ask


async def review_failed(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, error: BaseException
) -> PacketUpdate:
    """Close the gate: a review that raised counts as 0.0 for every call."""
    problem = f"the review failed: {error}"
    update = reviewed(
        packet,
        routing_context(runtime.context),
        failed_review(problem),
        can_ask=not nobody_to_ask(runtime.execution_info),
    )
    update["metrics"] = update["metrics"].failed(StageError(stage=STAGE, message=problem))
    return update
