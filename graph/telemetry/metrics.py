"""What is counted and timed: OpenTelemetry's metrics. Their attributes are few and never a user's or model's words."""

from opentelemetry.metrics import get_meter

from graph.telemetry import conventions as names
from graph.telemetry.attributes import Attributes
from state.events import StageFinished, StageStopped

_meter = get_meter(names.SCOPE)
_stages = _meter.create_histogram(
    names.STAGE_DURATION, "s", "Time that a stage took.", explicit_bucket_boundaries_advisory=names.SECONDS
)
_operations = _meter.create_histogram(
    names.OPERATION_DURATION,
    "s",
    "Time until a model's decision was there, repairs of it included.",
    explicit_bucket_boundaries_advisory=names.SECONDS,
)
_tokens = _meter.create_histogram(
    names.TOKENS_USED, "{token}", "Tokens used.", explicit_bucket_boundaries_advisory=names.TOKENS
)
_tool_calls = _meter.create_histogram(
    names.EXECUTE_TOOL_DURATION, "s", "Time of a tool call.", explicit_bucket_boundaries_advisory=names.SECONDS
)
_mcp_calls = _meter.create_histogram(
    names.MCP_DURATION,
    "s",
    "Time from a request to a server until its response.",
    explicit_bucket_boundaries_advisory=names.MCP_SECONDS,
)
_misses = _meter.create_counter(names.MISSES, "{miss}", "Tools selected that were not on the palette.")
_fallbacks = _meter.create_counter(names.FALLBACKS, "{fallback}", "Decisions by reflex where a model should have made.")
_escalations = _meter.create_counter(names.ESCALATIONS, "{question}", "Questions to the user.")
_corrections = _meter.create_counter(names.CORRECTIONS, "{correction}", "Wanted calls that could not be made as such.")


def record_stage(event: StageFinished, model: Attributes) -> None:
    """Count and time a stage that has ended; `model` says whose tokens it used."""
    stage = {names.STAGE: event.stage}
    _stages.record(event.duration_ms / 1000, stage | {names.MODE: event.mode})
    _record_usage(event, model)
    if event.missed:
        _misses.add(len(event.missed), stage)
    if event.is_fallback:
        _fallbacks.add(1, stage)
    if event.escalation:
        _escalations.add(1, stage | {names.ESCALATION: event.escalation})
    for problem in event.corrections:
        _corrections.add(1, stage | {names.CORRECTION: problem})


def record_stop(event: StageStopped, model: Attributes) -> None:
    """Time a stage that broke; the time until a question was put is no measure of anything."""
    if event.reason == "error":
        _stages.record(event.duration_ms / 1000, {names.STAGE: event.stage, names.ERROR_TYPE: event.error})
        _record_usage(event, model, {names.ERROR_TYPE: event.error})


def record_call(tool_name: str, seconds: float, error_type: str | None, *, answered: bool) -> None:
    """Time a tool call; as a request to a server only where the server answered."""
    attributes = {names.OPERATION_NAME: names.EXECUTE_TOOL, names.TOOL_NAME: tool_name}
    if error_type:
        attributes[names.ERROR_TYPE] = error_type
    _tool_calls.record(seconds, attributes)
    if answered:
        _mcp_calls.record(seconds, attributes | {names.MCP_METHOD: names.TOOLS_CALL})


def _record_usage(event: StageFinished | StageStopped, model: Attributes, failed: Attributes | None = None) -> None:
    """Record what a model was asked; a stage without one spends no tokens."""
    usage = event.usage
    if not usage.input_tokens and not usage.output_tokens:
        return
    attributes = {names.OPERATION_NAME: names.CHAT, names.STAGE: event.stage, **model}
    _tokens.record(usage.input_tokens, attributes | {names.TOKENS_TYPE: "input"})
    _tokens.record(usage.output_tokens, attributes | {names.TOKENS_TYPE: "output"})
    _operations.record(event.duration_ms / 1000, attributes | (failed or {}))
