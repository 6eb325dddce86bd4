"""Stages, tool calls and reviews as OpenTelemetry spans and metrics. Without a configured SDK nothing is recorded.

Names are those of OpenTelemetry's conventions for GenAI and MCP, and our own below `packetgate.`:
https://github.com/open-telemetry/semantic-conventions-genai, in development as of 2026. The user's words, arguments and
what tools return are left out unless the user sets `CAPTURE_CONTENT`; metrics never carry them.
"""

import json
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

from opentelemetry.metrics import get_meter
from opentelemetry.trace import INVALID_SPAN, Span, StatusCode, get_tracer
from opentelemetry.util.types import AttributeValue

from packetgate.graph.changes import StageChange
from packetgate.models.source import Named
from packetgate.state.base import TokenUsage
from packetgate.state.events import StageFinished, StageStopped
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Evaluation
from packetgate.state.transitions import ToolExecutionStatus

log = logging.getLogger(__name__)

Attributes = dict[str, AttributeValue]

SCOPE = "packetgate"
STAGE = "packetgate.stage"
OPERATION_NAME = "gen_ai.operation.name"
EXECUTE_TOOL = "execute_tool"
TOOL_NAME = "gen_ai.tool.name"
ERROR_TYPE = "error.type"
CAPTURE_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that allows content, which is arguments, results and explanations, on spans."""

_tracer = get_tracer(SCOPE)
_meter = get_meter(SCOPE)
_logged: deque[str] = deque(maxlen=256)

# the buckets that the conventions ask for
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_MCP_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_TOKENS = tuple(4**power for power in range(14))

_seconds = partial(_meter.create_histogram, unit="s", explicit_bucket_boundaries_advisory=_SECONDS)
_stages = _seconds("packetgate.stage.duration", description="Time that a stage took.")
_operations = _seconds(
    "gen_ai.client.operation.duration", description="Time until a model's decision was there, repairs of it included."
)
_tool_calls = _seconds("gen_ai.execute_tool.duration", description="Time of a tool call.")
_mcp_calls = _seconds(
    "mcp.client.operation.duration",
    description="Time from a request to a server until its response.",
    explicit_bucket_boundaries_advisory=_MCP_SECONDS,
)
_tokens = _meter.create_histogram(
    "gen_ai.client.token.usage", "{token}", "Tokens used.", explicit_bucket_boundaries_advisory=_TOKENS
)
_misses = _meter.create_counter("packetgate.misses", "{miss}", "Tools selected that were not on the palette.")
_fallbacks = _meter.create_counter(
    "packetgate.fallbacks", "{fallback}", "Decisions by reflex where a model should have made."
)
_escalations = _meter.create_counter("packetgate.escalations", "{question}", "Questions to the user.")
_calls = _meter.create_counter("packetgate.calls", "{call}", "Calls that came to a status.")
_corrections = _meter.create_counter(
    "packetgate.corrections", "{correction}", "Wanted calls that could not be made as such."
)


@contextmanager
def guarded(packet_id: str) -> Iterator[None]:
    """Keep errors of telemetry, the user's exporters included, from ending a turn; log the first of each packet."""
    try:
        yield
    except Exception:  # noqa: BLE001  the user's exporters
        _log_incomplete(packet_id)


def _log_incomplete(packet_id: str) -> None:
    if packet_id not in _logged:
        _logged.append(packet_id)
        log.exception("telemetry of packet %r is incomplete", packet_id)


def started_span(stage: str, packet_id: str) -> Span:
    """Return a stage's span, an invalid one where it cannot be started."""
    try:
        return _tracer.start_span(f"{SCOPE} {stage}")
    except Exception:  # noqa: BLE001  the user's SDK
        _log_incomplete(packet_id)
        return INVALID_SPAN


def ended_span(span: Span, packet_id: str) -> None:
    """End a span."""
    with guarded(packet_id):
        span.end()


def record_change(span: Span, change: StageChange, event: StageFinished, model: Attributes) -> None:
    """Record a stage that has just ended, with its tool calls and its reviews; `model` says whose tokens it used."""
    _record_stage(event, model)
    ran = [call for call in change.calls if _was_tried(call)]
    for call in ran:
        _record_call(call, event)
    if not span.is_recording():
        return
    began = time.time_ns() - round(event.duration_ms * 1e6)
    span.set_attributes(_of_stage(change, event) | model)
    for call in ran:  # after the fact: calls of one pass start together, with their stage
        of_call = _tracer.start_span(f"{EXECUTE_TOOL} {call.tool_name}", attributes=_of_call(call), start_time=began)
        if _error_type(call):
            of_call.set_status(StatusCode.ERROR)
        of_call.end(began + round(_took_ms(call, event) * 1e6))
    for review in change.evaluations:
        span.add_event("gen_ai.evaluation.result", _of_review(review, change))


def record_break(span: Span, event: StageStopped, error: Exception, model: Attributes) -> None:
    """Record a stage that waits for the user, or that broke. The time until a question was put measures nothing."""
    failed: Attributes = {ERROR_TYPE: event.error} if event.reason == "error" else {}
    if failed:
        _stages.record(event.duration_ms / 1000, {STAGE: event.stage} | failed)
        _record_usage(event, model | failed)
    if not span.is_recording():
        return
    span.set_attributes(_identity(event) | _usage(event.usage) | failed | model)
    if failed:
        span.set_status(StatusCode.ERROR)
        if captures_content():
            span.record_exception(error)


async def of_model(source: Callable[[], Awaitable[Named]] | None, usage: TokenUsage) -> Attributes:
    """Return whose tokens were used; nothing where none were."""
    if source is None or usage == TokenUsage():
        return {}
    model = await source()
    return {"gen_ai.request.model": model.name, **({"gen_ai.provider.name": model.provider} if model.provider else {})}


def captures_content() -> bool:
    """Whether the user lets content onto spans."""
    return os.environ.get(CAPTURE_CONTENT, "").strip().lower() in {"true", "1", "span_only", "span_and_event"}


def _record_stage(event: StageFinished, model: Attributes) -> None:
    stage = {STAGE: event.stage}
    _stages.record(event.duration_ms / 1000, stage | {"packetgate.mode": event.mode})
    _record_usage(event, model)
    if event.missed:
        _misses.add(len(event.missed), stage)
    if event.is_fallback:
        _fallbacks.add(1, stage)
    if event.escalation:
        _escalations.add(1, stage | {"packetgate.escalation": event.escalation})
    for status, count in event.calls.items():
        _calls.add(count, stage | {"packetgate.call.status": status})
    for problem in event.corrections:
        _corrections.add(1, stage | {"packetgate.correction": problem})


def _record_call(call: ToolCall, event: StageFinished) -> None:
    """Time a tool call; as a request to a server only where the server answered."""
    attributes: Attributes = {OPERATION_NAME: EXECUTE_TOOL, TOOL_NAME: call.tool_name}
    if failure := _error_type(call):
        attributes[ERROR_TYPE] = failure
    seconds = _took_ms(call, event) / 1000
    _tool_calls.record(seconds, attributes)
    if _was_answered(call):
        _mcp_calls.record(seconds, attributes | {"mcp.method.name": "tools/call"})


def _record_usage(event: StageFinished | StageStopped, model: Attributes) -> None:
    usage = event.usage
    if not usage.input_tokens and not usage.output_tokens:
        return
    attributes = {OPERATION_NAME: "chat", STAGE: event.stage, **model}
    _operations.record(event.duration_ms / 1000, attributes)
    attributes.pop(ERROR_TYPE, None)
    _tokens.record(usage.input_tokens, attributes | {"gen_ai.token.type": "input"})
    _tokens.record(usage.output_tokens, attributes | {"gen_ai.token.type": "output"})


def _of_stage(change: StageChange, event: StageFinished) -> Attributes:
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


def _of_call(call: ToolCall) -> Attributes:
    told: Attributes = {
        OPERATION_NAME: EXECUTE_TOOL,
        TOOL_NAME: call.tool_name,
        "gen_ai.tool.call.id": call.call_id,
        "mcp.method.name": "tools/call",
        "packetgate.call.status": call.status.value,
        "packetgate.call.risk": call.risk.value,
    }
    if failure := _error_type(call):
        told[ERROR_TYPE] = failure
    if call.result and call.result.dry_run:
        told["packetgate.call.dry_run"] = True
    if call.result and captures_content():
        told["gen_ai.tool.call.arguments"] = json.dumps(call.params)
        told["gen_ai.tool.call.result"] = call.result.error or call.result.output
    return told


def _of_review(review: Evaluation, change: StageChange) -> Attributes:
    judged: Attributes = {
        "gen_ai.evaluation.name": review.name,
        "gen_ai.evaluation.score.value": review.score,
        "gen_ai.evaluation.score.label": review.label,
        "gen_ai.tool.call.id": review.subject,
        TOOL_NAME: next((call.tool_name for call in change.calls if call.call_id == review.subject), ""),
    }
    return judged | {"gen_ai.evaluation.explanation": review.explanation} if captures_content() else judged


def _was_tried(call: ToolCall) -> bool:
    """Whether the call was tried. A dry run that no server was asked about was not."""
    return call.result is not None and (_was_answered(call) or not call.result.success)


def _was_answered(call: ToolCall) -> bool:
    return call.result is not None and call.result.execution_time_ms > 0


def _took_ms(call: ToolCall, event: StageFinished) -> float:
    """Return the call's time; that of the whole stage where no answer came to end it."""
    return call.result.execution_time_ms if call.result and _was_answered(call) else event.duration_ms


def _error_type(call: ToolCall) -> str | None:
    """Return the type of a call's failure, and else how it ended; None when it did not fail."""
    if call.status not in {ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN}:
        return None
    return call.result.error_type.value if call.result and call.result.error_type else call.status.value


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
