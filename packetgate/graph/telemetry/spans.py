"""Stages as OpenTelemetry spans. Where the user has configured no SDK, nothing is recorded.

User's words, arguments and what tools return stay out, unless the user sets `CAPTURE_CONTENT`.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from opentelemetry.trace import INVALID_SPAN, Span, StatusCode, get_tracer, use_span

from packetgate.graph.telemetry.attributes import (
    EXECUTE_TOOL,
    SCOPE,
    Attributes,
    answered,
    captures_content,
    error_type,
    of_break,
    of_call,
    of_review,
    of_stage,
    took_ms,
    tried,
)
from packetgate.graph.telemetry.changes import StageChange
from packetgate.graph.telemetry.metrics import record_call, record_stage, record_stop
from packetgate.state.events import StageFinished, StageStopped
from packetgate.state.routing import ToolCall

log = logging.getLogger(__name__)

_tracer = get_tracer(SCOPE)
_logged: deque[str] = deque(maxlen=256)


@contextmanager
def guarded(packet_id: str) -> Iterator[None]:
    """Keep what goes wrong in telemetry, the user's exporters included, from ending a turn; log it once a packet."""
    try:
        yield
    except Exception:
        if packet_id not in _logged:
            _logged.append(packet_id)
            log.exception("telemetry of packet %r is incomplete", packet_id)


@contextmanager
def stage_span(stage: str, packet_id: str) -> Iterator[Span]:
    """Open a stage's span; what runs within, such as the spans of servers, belongs to it."""
    span: Span = INVALID_SPAN
    with guarded(packet_id):
        span = _tracer.start_span(f"{SCOPE} {stage}")
    known = span.get_span_context().is_valid
    within = use_span(span, record_exception=False, set_status_on_exception=False) if known else nullcontext()
    try:
        with within:
            yield span
    finally:
        with guarded(packet_id):
            span.end()


def record_change(span: Span, change: StageChange, event: StageFinished, model: Attributes) -> None:
    """Record a stage that has just ended, with its tool calls, its reviews, and whose tokens it used."""
    record_stage(event, model)
    ran = [call for call in change.calls if tried(call)]
    for call in ran:
        record_call(call.tool_name, took_ms(call, event) / 1000, error_type(call), answered=answered(call))
    if not span.is_recording():
        return
    began = time.time_ns() - round(event.duration_ms * 1e6)
    span.set_attributes(of_stage(change, event) | model)
    for call in ran:
        _record_call(call, began, began + round(took_ms(call, event) * 1e6))
    for review in change.evaluations:
        span.add_event("gen_ai.evaluation.result", of_review(review, change))


def record_break(span: Span, event: StageStopped, error: Exception, model: Attributes) -> None:
    """Record a stage that waits for the user, or that broke, and whose tokens it used."""
    record_stop(event, model)
    if not span.is_recording():
        return
    span.set_attributes(of_break(event) | model)
    if event.reason == "error":
        span.set_status(StatusCode.ERROR)
        if captures_content():
            span.record_exception(error)


def _record_call(call: ToolCall, began: int, ended: int) -> None:
    """Record a call after the fact: calls of one pass start together, with their stage."""
    span = _tracer.start_span(f"{EXECUTE_TOOL} {call.tool_name}", attributes=of_call(call), start_time=began)
    if error_type(call):
        span.set_status(StatusCode.ERROR)
    span.end(ended)
