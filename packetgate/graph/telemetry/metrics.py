"""What is counted and timed: OpenTelemetry's metrics. Their attributes are few and never a user's or model's words."""

from functools import partial

from opentelemetry.metrics import get_meter

from packetgate.graph.telemetry.attributes import (
    ERROR_TYPE,
    EXECUTE_TOOL,
    OPERATION_NAME,
    SCOPE,
    STAGE,
    TOOL_NAME,
    Attributes,
)
from packetgate.state.events import StageFinished, StageStopped

# the buckets that the conventions ask for
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_MCP_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_TOKENS = tuple(4**power for power in range(14))

_meter = get_meter(SCOPE)
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


def record_stage(event: StageFinished, model: Attributes) -> None:
    """Count and time a stage that has ended; `model` says whose tokens it used."""
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


def record_stop(event: StageStopped, model: Attributes) -> None:
    """Time a stage that broke; the time until a question was put is no measure of anything."""
    if event.reason == "error":
        _stages.record(event.duration_ms / 1000, {STAGE: event.stage, ERROR_TYPE: event.error})
        _record_usage(event, model, {ERROR_TYPE: event.error})


def record_call(tool_name: str, seconds: float, error_type: str | None, *, answered: bool) -> None:
    """Time a tool call; as a request to a server only where the server answered."""
    attributes = {OPERATION_NAME: EXECUTE_TOOL, TOOL_NAME: tool_name}
    if error_type:
        attributes[ERROR_TYPE] = error_type
    _tool_calls.record(seconds, attributes)
    if answered:
        _mcp_calls.record(seconds, attributes | {"mcp.method.name": "tools/call"})


def _record_usage(event: StageFinished | StageStopped, model: Attributes, failed: Attributes | None = None) -> None:
    """Record what a model was asked; a stage without one spends no tokens."""
    usage = event.usage
    if not usage.input_tokens and not usage.output_tokens:
        return
    attributes = {OPERATION_NAME: "chat", STAGE: event.stage, **model}
    _tokens.record(usage.input_tokens, attributes | {"gen_ai.token.type": "input"})
    _tokens.record(usage.output_tokens, attributes | {"gen_ai.token.type": "output"})
    _operations.record(event.duration_ms / 1000, attributes | (failed or {}))
