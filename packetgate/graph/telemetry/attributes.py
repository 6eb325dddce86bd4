"""What spans say of stages, calls and reviews. Content is left out unless the user sets `CAPTURE_CONTENT`.

Names are those of OpenTelemetry's conventions for GenAI and MCP, and our own below `packetgate.`:
https://github.com/open-telemetry/semantic-conventions-genai, in development as of 2026.
"""

import json
import os
from collections.abc import Awaitable, Callable

from opentelemetry.util.types import AttributeValue

from packetgate.graph.telemetry.changes import StageChange
from packetgate.models.source import Named
from packetgate.state.base import TokenUsage
from packetgate.state.events import StageFinished, StageStopped
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Evaluation
from packetgate.state.transitions import ToolExecutionStatus

Attributes = dict[str, AttributeValue]

SCOPE = "packetgate"
STAGE = "packetgate.stage"
OPERATION_NAME = "gen_ai.operation.name"
EXECUTE_TOOL = "execute_tool"
TOOL_NAME = "gen_ai.tool.name"
ERROR_TYPE = "error.type"
CAPTURE_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that allows content, which is arguments, results and explanations, on spans."""


def of_stage(change: StageChange, event: StageFinished) -> Attributes:
    """Return a stage's attributes. A missed name is the model's word until it is known to be a tool's."""
    known = None if captures_content() else set(change.context[1].available_mcp_tools)
    told: Attributes = {
        "packetgate.tools.loaded": event.loaded,
        "packetgate.tools.added": event.added,
        "packetgate.tools.removed": event.removed,
        "packetgate.context.shifted": bool(event.shift),
        "packetgate.tools.used": event.used,
        "packetgate.tools.missed": tuple(name for name in event.missed if known is None or name in known),
        "packetgate.tools.escalated": event.escalated,
        "packetgate.escalation": event.escalation or "",
        "packetgate.correction": event.corrections,
        "packetgate.violations": event.violations,
        "packetgate.errors": len(event.errors),
        **{f"packetgate.calls.{status}": count for status, count in event.calls.items()},
    }
    return {
        **_identity(event),
        "packetgate.mode": event.mode,
        "packetgate.fallback": event.is_fallback,
        "packetgate.reinjections": event.reinjection_count,
        **{name: value for name, value in told.items() if value},
        **_usage(event.usage),
    }


def of_break(event: StageStopped) -> Attributes:
    """Return the attributes of a stage that waits for the user, or that broke."""
    failed: Attributes = {ERROR_TYPE: event.error} if event.reason == "error" else {}
    return _identity(event) | _usage(event.usage) | failed


async def of_model(source: Callable[[], Awaitable[Named]] | None, usage: TokenUsage) -> Attributes:
    """Return whose tokens were used; nothing where none were."""
    if source is None or usage == TokenUsage():
        return {}
    model = await source()
    return {"gen_ai.request.model": model.name, **({"gen_ai.provider.name": model.provider} if model.provider else {})}


def of_call(call: ToolCall) -> Attributes:
    """Return a tool call's attributes."""
    told: Attributes = {
        OPERATION_NAME: EXECUTE_TOOL,
        TOOL_NAME: call.tool_name,
        "gen_ai.tool.call.id": call.call_id,
        "mcp.method.name": "tools/call",
        "packetgate.call.status": call.status.value,
        "packetgate.call.risk": call.risk.value,
    }
    if failure := error_type(call):
        told[ERROR_TYPE] = failure
    if call.result and call.result.dry_run:
        told["packetgate.call.dry_run"] = True
    if call.result and captures_content():
        told["gen_ai.tool.call.arguments"] = json.dumps(call.params)
        told["gen_ai.tool.call.result"] = call.result.error or call.result.output
    return told


def of_review(review: Evaluation, change: StageChange) -> Attributes:
    """Return the attributes of the judgement on a call."""
    judged: Attributes = {
        "gen_ai.evaluation.name": review.name,
        "gen_ai.evaluation.score.value": review.score,
        "gen_ai.evaluation.score.label": review.label,
        "gen_ai.tool.call.id": review.subject,
        TOOL_NAME: next((call.tool_name for call in change.calls if call.call_id == review.subject), ""),
    }
    return judged | {"gen_ai.evaluation.explanation": review.explanation} if captures_content() else judged


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
    """Return the type of a call's failure, and else how it ended; None when it did not fail."""
    if call.status not in {ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN}:
        return None
    return call.result.error_type.value if call.result and call.result.error_type else call.status.value


def captures_content() -> bool:
    """Whether the user lets content onto spans."""
    return os.environ.get(CAPTURE_CONTENT, "").strip().lower() in {"true", "1", "span_only", "span_and_event"}


def _identity(event: StageFinished | StageStopped) -> Attributes:
    return {
        STAGE: event.stage,
        "gen_ai.conversation.id": event.session_id,
        "packetgate.packet.id": event.packet_id,
    }


def _usage(usage: TokenUsage) -> Attributes:
    if not usage.input_tokens and not usage.output_tokens:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
    }
