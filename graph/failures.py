"""What happens when a stage fails."""

from typing import Literal

from langgraph.errors import NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command

from deciders.gate import failed_review
from graph.routes import after_review
from nodes.review_selection import reviewed
from state.base import TokenUsage
from state.context import RoutingContext, routing_context
from state.errors import DecisionError
from state.packet import CognitionPacket
from state.sections import StageError
from tools.asking import nobody_to_ask


async def review_failed(
    packet: CognitionPacket, error: NodeError, runtime: Runtime[RoutingContext]
) -> Command[Literal["execute_tool", "ask_user", "respond"]]:
    """Close the gate: a review that raised counts as 0.0 for every call."""
    problem = f"the review failed: {error.error}"
    update = reviewed(
        packet,
        routing_context(runtime.context),
        failed_review(problem, error.error.usage if isinstance(error.error, DecisionError) else TokenUsage()),
        can_ask=not nobody_to_ask(runtime.execution_info),
    )
    update["metrics"] = update["metrics"].failed(StageError(stage=error.node, message=problem))
    return Command(update=update, goto=after_review(packet.merged(update)))
