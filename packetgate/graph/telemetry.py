"""OpenTelemetry spans and metrics of stages, tool calls and reviews. Without an SDK nothing is recorded.

Names follow OpenTelemetry's conventions for GenAI and MCP; Packetgate's own begin with `packetgate.`. Users' words,
arguments and results are recorded only if the user sets `CAPTURE_CONTENT`, and never in metrics.
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
from opentelemetry.trace import INVALID_SPAN, Span, StatusCode, get_tracer, use_span
from opentelemetry.util.types import AttributeValue

from packetgate.graph.changes import StageChange
from packetgate.models.pool import NamedModel
from packetgate.state.base import TokenUsage
from packetgate.state.events import StageFinished, StageStopped
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Evaluation
from packetgate.state.transitions import ToolExecutionStatus

Attributes = dict[str, AttributeValue]

SCOPE = "packetgate"
CAPTURE_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Environment variable that allows arguments, results and explanations on spans."""

_log = logging.getLogger(__name__)
_tracer, _meter = get_tracer(SCOPE), get_meter(SCOPE)
_logged: deque[str] = deque(maxlen=256)

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Bucket boundaries of the conventions."""
_histogram = partial(_meter.create_histogram, unit="s", explicit_bucket_boundaries_advisory=_SECONDS)

_stages = _histogram("packetgate.stage.duration", description="Duration of a stage.")
_operations = _histogram("gen_ai.client.operation.duration", description="Duration of a model's decision.")
_tool_calls = _histogram("gen_ai.execute_tool.duration", description="Duration of a tool call.")
_tokens = _meter.create_histogram(
    "gen_ai.client.token.usage",
    "{token}",
    "Tokens used.",
    explicit_bucket_boundaries_advisory=tuple(4**power for power in range(14)),
)
_misses = _meter.create_counter("packetgate.misses", "{miss}", "Selected tools that were not on the palette.")
_fallbacks = _meter.create_counter("packetgate.fallbacks", "{fallback}", "Decisions by reflex in place of a model.")
_escalations = _meter.create_counter("packetgate.escalations", "{question}", "Questions to the user.")
_calls = _meter.create_counter("packetgate.calls", "{call}", "Calls by new status.")
_corrections = _meter.create_counter("packetgate.corrections", "{correction}", "Faults of requested calls.")


@contextmanager
def log_errors(packet_id: str) -> Iterator[None]:
    """Catch errors of telemetry and records, so that they never end a turn; log the first error of each packet."""
    try:
        yield
    except Exception:  # noqa: BLE001  errors of the user's exporters and stores
        if packet_id not in _logged:
            _logged.append(packet_id)
            _log.exception("telemetry of packet %r is incomplete", packet_id)


@contextmanager
def stage_span(stage: str, packet_id: str) -> Iterator[Span]:
    """Yield a stage's span as the current span; an invalid span if it cannot be started."""
    span: Span = INVALID_SPAN
    with log_errors(packet_id):
        span = _tracer.start_span(f"{SCOPE} {stage}")
    if not span.is_recording():
        yield span
        return
    try:
        with use_span(span, record_exception=False, set_status_on_exception=False):
            yield span
    finally:
        with log_errors(packet_id):
            span.end()


def record_change(span: Span, change: StageChange, event: StageFinished, model: Attributes) -> None:
    """Record a finished stage with its tool calls and reviews; `model` describes the model whose tokens it used."""
    stage: Attributes = {"packetgate.stage": event.stage}
    failed: Attributes = {"error.type": "reported_error"} if event.errors else {}
    _stages.record(event.duration_ms / 1000, stage | {"packetgate.mode": event.mode} | failed)
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
    finished_calls = [call for call in change.calls if call.result and (_has_answer(call) or not call.result.success)]
    for call in finished_calls:
        _tool_calls.record(_duration_ms(call, event) / 1000, _tool_attributes(call))
    if not span.is_recording():
        return
    stage_start = time.time_ns() - round(event.duration_ms * 1e6)
    span.set_attributes(_stage_attributes(change, event) | model)
    for call in finished_calls:  # the calls of a pass start when the stage starts
        name = f"execute_tool {call.tool_name}"
        call_span = _tracer.start_span(name, attributes=_call_attributes(call), start_time=stage_start)
        if _error_type(call):
            call_span.set_status(StatusCode.ERROR)
        call_span.end(stage_start + round(_duration_ms(call, event) * 1e6))
    for review in change.after.reasoning.evaluations[len(change.before.reasoning.evaluations) :]:
        span.add_event("gen_ai.evaluation.result", _review_attributes(review, change))


def record_stop(span: Span, event: StageStopped, error: Exception, model: Attributes) -> None:
    """Record a stage that failed or waits for the user. The duration is recorded only if the stage failed."""
    failed: Attributes = {"error.type": event.error} if event.reason == "error" else {}
    if failed:
        _stages.record(event.duration_ms / 1000, {"packetgate.stage": event.stage} | failed)
        _record_usage(event, model | failed)
    if not span.is_recording():
        return
    span.set_attributes(_identity(event) | failed | model)
    if failed:
        span.set_status(StatusCode.ERROR)
        if captures_content():
            span.record_exception(error)


async def model_attributes(source: Callable[[], Awaitable[NamedModel]] | None, usage: TokenUsage) -> Attributes:
    """Return the attributes of the model whose tokens were used; empty if no tokens were used."""
    if source is None or usage == TokenUsage():
        return {}
    model = await source()
    return {"gen_ai.request.model": model.name, **({"gen_ai.provider.name": model.provider} if model.provider else {})}


def captures_content() -> bool:
    """Whether the user allows content on spans."""
    return os.environ.get(CAPTURE_CONTENT, "").strip().lower() in {"true", "1", "span_only", "span_and_event"}


def _record_usage(event: StageFinished | StageStopped, model: Attributes) -> None:
    usage = event.usage
    if not usage.input_tokens and not usage.output_tokens:
        return
    attributes = {"gen_ai.operation.name": "chat", "packetgate.stage": event.stage, **model}
    _operations.record(event.duration_ms / 1000, attributes)
    attributes.pop("error.type", None)
    _tokens.record(usage.input_tokens, attributes | {"gen_ai.token.type": "input"})
    _tokens.record(usage.output_tokens, attributes | {"gen_ai.token.type": "output"})


def _stage_attributes(change: StageChange, event: StageFinished) -> Attributes:
    known = None if captures_content() else set(change.after.context.available_mcp_tools)
    optional: Attributes = {
        "packetgate.tools.loaded": event.loaded,
        "packetgate.tools.added": event.added,
        "packetgate.tools.removed": event.removed,
        "packetgate.context.shifted": bool(event.shift),
        "packetgate.tools.used": event.used,
        # an unknown name is the model's text, and may quote the user
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
        **{name: value for name, value in optional.items() if value},
    }


def _tool_attributes(call: ToolCall) -> Attributes:
    attributes: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.tool_name}
    return attributes | ({"error.type": failure} if (failure := _error_type(call)) else {})


def _call_attributes(call: ToolCall) -> Attributes:
    attributes = _tool_attributes(call) | {
        "gen_ai.tool.call.id": call.call_id,
        "mcp.method.name": "tools/call",
        "packetgate.call.status": call.status.value,
        "packetgate.call.risk": call.risk.value,
    }
    if call.result and call.result.dry_run:
        attributes["packetgate.call.dry_run"] = True
    if call.result and captures_content():
        attributes["gen_ai.tool.call.arguments"] = json.dumps(call.params)
        attributes["gen_ai.tool.call.result"] = call.result.error or call.result.output
    return attributes


def _review_attributes(review: Evaluation, change: StageChange) -> Attributes:
    attributes: Attributes = {
        "gen_ai.evaluation.name": review.name,
        "gen_ai.evaluation.score.value": review.score,
        "gen_ai.evaluation.score.label": review.label,
        "gen_ai.tool.call.id": review.subject,
        "gen_ai.tool.name": next((call.tool_name for call in change.calls if call.call_id == review.subject), ""),
    }
    if captures_content():
        attributes["gen_ai.evaluation.explanation"] = review.explanation
    return attributes


def _has_answer(call: ToolCall) -> bool:
    return call.result is not None and call.result.execution_time_ms > 0


def _duration_ms(call: ToolCall, event: StageFinished) -> float:
    """Return the call's duration; the stage's duration if no answer came."""
    return call.result.execution_time_ms if call.result and _has_answer(call) else event.duration_ms


def _error_type(call: ToolCall) -> str | None:
    if call.status not in {ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN}:
        return None
    return call.result.error_type.value if call.result and call.result.error_type else call.status.value


def _identity(event: StageFinished | StageStopped) -> Attributes:
    usage, tokens = event.usage, {}
    if usage.input_tokens or usage.output_tokens:
        tokens = {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        }
    return {
        "packetgate.stage": event.stage,
        "gen_ai.conversation.id": event.session_id,
        "packetgate.packet.id": event.packet_id,
        **tokens,
    }
