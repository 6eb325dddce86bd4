"""What spans say of stages, calls and reviews. Content is left out unless the user sets `CAPTURE_CONTENT`."""

import json
import os

from opentelemetry.util.types import AttributeValue

from graph.telemetry import conventions as names
from graph.telemetry.changes import StageChange
from models.model import ModelSource
from state.base import TokenUsage
from state.events import StageFinished, StageStopped
from state.routing import ToolCall
from state.sections import Evaluation
from state.transitions import ToolExecutionStatus

Attributes = dict[str, AttributeValue]


def of_stage(change: StageChange, event: StageFinished) -> Attributes:
    """Return a stage's attributes. A missed name is the model's word until it is known to be a tool's."""
    known = None if captures_content() else set(change.context[1].available_mcp_tools)
    told: Attributes = {
        names.LOADED: event.loaded,
        names.ADDED: event.added,
        names.REMOVED: event.removed,
        names.SHIFTED: bool(event.shift),
        names.USED: event.used,
        names.MISSED: tuple(name for name in event.missed if known is None or name in known),
        names.ESCALATED: event.escalated,
        names.ESCALATION: event.escalation or "",
        names.CORRECTION: event.corrections,
        names.VIOLATIONS: event.violations,
        names.ERRORS: len(event.errors),
        **{f"{names.CALLS}{status}": count for status, count in event.calls.items()},
    }
    return {
        **_identity(event),
        names.MODE: event.mode,
        names.FALLBACK: event.is_fallback,
        names.REINJECTIONS: event.reinjection_count,
        **{name: value for name, value in told.items() if value},
        **_usage(event.usage),
    }


def of_break(event: StageStopped) -> Attributes:
    """Return the attributes of a stage that waits for the user, or that broke."""
    failed: Attributes = {names.ERROR_TYPE: event.error} if event.reason == "error" else {}
    return _identity(event) | _usage(event.usage) | failed


async def of_model(source: ModelSource | None, usage: TokenUsage) -> Attributes:
    """Return whose tokens were used; nothing where none were."""
    if source is None or usage == TokenUsage():
        return {}
    model = await source()
    return {names.REQUEST_MODEL: model.name, **({names.PROVIDER: model.provider} if model.provider else {})}


def of_call(call: ToolCall) -> Attributes:
    """Return a tool call's attributes."""
    told: Attributes = {
        names.OPERATION_NAME: names.EXECUTE_TOOL,
        names.TOOL_NAME: call.tool_name,
        names.TOOL_CALL_ID: call.call_id,
        names.MCP_METHOD: names.TOOLS_CALL,
        names.CALL_STATUS: call.status.value,
        names.CALL_RISK: call.risk.value,
    }
    if failure := error_type(call):
        told[names.ERROR_TYPE] = failure
    if call.result and call.result.dry_run:
        told[names.DRY_RUN] = True
    if call.result and captures_content():
        told[names.TOOL_CALL_ARGUMENTS] = json.dumps(call.params)
        told[names.TOOL_CALL_RESULT] = call.result.error or call.result.output
    return told


def of_review(review: Evaluation, change: StageChange) -> Attributes:
    """Return the attributes of the judgement on a call."""
    judged: Attributes = {
        names.EVALUATION_NAME: review.name,
        names.EVALUATION_SCORE: review.score,
        names.EVALUATION_LABEL: review.label,
        names.TOOL_CALL_ID: review.subject,
        names.TOOL_NAME: next((call.tool_name for call in change.calls if call.call_id == review.subject), ""),
    }
    return judged | {names.EVALUATION_EXPLANATION: review.explanation} if captures_content() else judged


def tried(call: ToolCall) -> bool:
    """Whether the call was tried. A dry run that no server was asked about was not."""
    return call.result is not None and (answered(call) or not call.result.success)


def answered(call: ToolCall) -> bool:
    """Whether a server answered the call."""
    return call.result is not None and call.result.execution_time_ms > 0


def took_ms(call: ToolCall, event: StageFinished) -> float:
    """Return the call's time; that of the whole stage where no answer came to end it."""
    return call.result.execution_time_ms if call.result and answered(call) else event.duration_ms


def error_type(call: ToolCall) -> str | None:
    """Return the class of a call's failure; None when it did not fail."""
    if call.status not in {ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN}:
        return None
    return names.TOOL_ERROR if answered(call) else call.status.value


def captures_content() -> bool:
    """Whether the user lets content onto spans."""
    return os.environ.get(names.CAPTURE_CONTENT, "").strip().lower() in names.CAPTURING


def _identity(event: StageFinished | StageStopped) -> Attributes:
    return {
        names.STAGE: event.stage,
        names.CONVERSATION_ID: event.session_id,
        names.PACKET_ID: event.packet_id,
    }


def _usage(usage: TokenUsage) -> Attributes:
    if not usage.input_tokens and not usage.output_tokens:
        return {}
    return {
        names.INPUT_TOKENS: usage.input_tokens,
        names.OUTPUT_TOKENS: usage.output_tokens,
        names.CACHED_TOKENS: usage.cached_tokens,
    }
