"""The gate: review each call; only approved calls continue."""

from collections.abc import Awaitable, Callable

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from packetgate.deciders.commands import COMMAND, is_command
from packetgate.deciders.gate import FAILED_REVIEW, NOT_APPROVED_CAP, apply_gate, calibrate_review, passes_gate
from packetgate.deciders.protocols import Review, Reviewer
from packetgate.state.base import TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, PacketgateError
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Evaluation, Reflection
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.questions import approval_update, nobody_to_ask
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.permission import approvals_without_question, needs_of
from packetgate.tools.execution.running import run_dry_runs
from packetgate.tools.usage.calibration import Calibration, curve_name

_STAGE = "review_selection"

CalibrationSource = Callable[[CognitionPacket, BaseStore | None], Awaitable[Calibration]]
"""Returns the curves of the user's answers and of the model's evaluation."""


async def review_selection(
    packet: CognitionPacket,
    runtime: Runtime[RoutingContext],
    *,
    decider: Reviewer,
    toolbox: Toolbox,
    journal: Journal,
    calibration: CalibrationSource | None = None,
) -> PacketUpdate:
    """Review all calls of the pass in one request, and calibrate the confidence. A failed review approves no call."""
    catalogue = await toolbox.catalogue()
    calls = packet.routing.calls
    if calls and is_command(packet.content.original_prompt):
        review = Review.approving(calls, COMMAND)
        return await apply_review(packet, runtime, review, catalogue, toolbox=toolbox, journal=journal)
    try:
        review = await decider(packet, catalogue, packet.governance.settings)
        review = calibrate_review(review, await calibration(packet, runtime.store)) if calibration else review
    except GraphBubbleUp:  # an interrupt of the user's own decider
        raise
    except Exception as error:  # noqa: BLE001  from a model, or from the user's own decider
        reason = str(error) if isinstance(error, PacketgateError) else f"{type(error).__name__}: {error}"
        usage = error.usage if isinstance(error, DecisionError) else TokenUsage()
        review = FAILED_REVIEW.changed(fallback_reason=f"the review failed: {reason}", usage=usage)
    return await apply_review(packet, runtime, review, catalogue, toolbox=toolbox, journal=journal)


async def apply_review(
    packet: CognitionPacket,
    runtime: Runtime[RoutingContext],
    review: Review,
    catalogue: Catalogue,
    *,
    toolbox: Toolbox,
    journal: Journal,
) -> PacketUpdate:
    """Return the sections that a review changes, with a question if the user must decide."""
    settings, can_ask = packet.governance.settings, not nobody_to_ask(runtime.execution_info)
    needs = await needs_of(packet, catalogue, journal)
    gated_calls = apply_gate(packet.routing.calls, review, settings, needs, can_ask=can_ask)
    approvals = approvals_without_question(gated_calls, needs, packet, catalogue)
    packet = packet.with_update({"governance": packet.governance.with_approvals(*approvals)})
    packet, dry_runs = await run_dry_runs(gated_calls, packet, catalogue, toolbox, journal)
    calls = tuple(_call_after_dry_run(call, dry_runs.get(call.call_id)) for call in gated_calls)
    evaluations = packet.reasoning.evaluations + tuple(_evaluation(call, review, settings) for call in calls)
    return {
        "tool_routing": packet.routing.changed(calls=calls),
        **approval_update(calls, packet, catalogue, dry_runs),
        "metrics": packet.metrics.with_tokens(_STAGE, review.usage).with_errors(*review.errors(_STAGE)),
        "reasoning": packet.reasoning.changed(evaluations=evaluations).with_reflections(
            Reflection(
                step=_STAGE,
                summary="; ".join(f"{call.tool_name}: {_status_text(call)}, {call.review_reasoning}" for call in calls),
                confidence=min((call.review_confidence for call in calls), default=0.0),
                confidence_source=review.confidence_source,
                decided_by=review.decided_by,
            )
        ),
    }


def _call_after_dry_run(call: ToolCall, dry_run: ToolCall | None) -> ToolCall:
    return dry_run if dry_run and dry_run.status is ToolExecutionStatus.FAILED else call


def _evaluation(call: ToolCall, review: Review, settings: RoutingContext) -> Evaluation:
    judgement = review.for_call(call.call_id)
    score, source = judgement.uncalibrated
    return Evaluation(
        name="selection_review",
        subject=call.call_id,
        score=call.review_confidence,
        label="approved" if passes_gate(judgement, settings) else "not_approved",
        explanation=call.review_reasoning,
        stated=score if judgement.approved else min(score, NOT_APPROVED_CAP),
        kind=curve_name(review.decided_by, source),
    )


def _status_text(call: ToolCall) -> str:
    failed = f" in a dry run ({call.result.error})" if call.result else ""
    return f"{call.status.replace('_', ' ')}{failed}"
