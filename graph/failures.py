"""What happens when a stage fails."""

from langgraph.runtime import Runtime

from deciders.gate import FAILED_REVIEW
from nodes.review_selection import STAGE, reviewed
from state.context import RoutingContext
from state.packet import CognitionPacket, PacketUpdate
from state.sections import StageError
from tools.catalogue.toolbox import Toolbox
from tools.execution.journal import Journal


async def review_failed(
    packet: CognitionPacket,
    runtime: Runtime[RoutingContext],
    *,
    toolbox: Toolbox,
    journal: Journal,
    error: BaseException,
) -> PacketUpdate:
    """Close the gate: a review that raised counts as 0.0 for every call."""
    problem = f"the review failed: {error}"
    update = await reviewed(packet, runtime, FAILED_REVIEW, toolbox=toolbox, journal=journal)
    update["metrics"] = update["metrics"].failed(StageError(stage=STAGE, message=problem))
    return update
