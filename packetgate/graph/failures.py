"""What happens when a stage fails."""

from langgraph.runtime import Runtime

from packetgate.deciders.gate import FAILED_REVIEW
from packetgate.nodes.review_selection import STAGE, reviewed
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.sections import StageError
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.execution.journal import Journal


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
    update = await reviewed(packet, runtime, FAILED_REVIEW, await toolbox.catalogue(), toolbox=toolbox, journal=journal)
    update["metrics"] = update["metrics"].failed(StageError(stage=STAGE, message=problem))
    return update
