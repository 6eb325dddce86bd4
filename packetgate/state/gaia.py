"""Read and write packets in the GAIA format, with its `TOOL_ROUTING` settings."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from packetgate.state.base import Confidence, ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, PacketError, first_problem
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json
from packetgate.state.routing import Alternative, ToolCall, ToolResult, ToolRouting
from packetgate.state.transitions import ToolExecutionStatus

SETTINGS = "TOOL_ROUTING"
"""Under which the constants hold the settings, named as ours in capitals."""
_SETTINGS = (
    *("enabled", "selection_temperature", "review_temperature", "confidence_threshold", "max_reinjections"),
    *("allow_write_tools", "allow_execute_tools"),
)
_SECTIONS: dict[str, dict[str, Any]] = {
    "header": {"packet_id": True, "session_id": True},
    "intent": {"user_intent": True, "system_task": True},
    "context": {"available_mcp_tools": True},
    "content": {"original_prompt": True, "data_fields": True},
    "reasoning": {
        "reflection_log": {"__all__": {"step", "summary", "confidence"}},
        "sketchpad": {"__all__": {"slot", "content", "content_type"}},
    },
    "status": {"state": True},
}
"""The fields that have the same name in both formats."""
_WRITTEN_AS = {
    ToolExecutionStatus.AWAITING_APPROVAL: ToolExecutionStatus.PENDING,
    ToolExecutionStatus.UNKNOWN: ToolExecutionStatus.FAILED,
}
"""Statuses that GAIA does not have, with the status that is written instead."""


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class GaiaTool(_Form):
    """`SelectedTool`: a tool as GAIA selects it."""

    tool_name: str
    params: dict[str, JsonValue] = {}
    selection_reasoning: str = ""
    selection_confidence: Confidence = 0.0


class GaiaResult(_Form):
    """`ToolExecutionResult`: an output of any type, or an error."""

    success: bool
    output: JsonValue = None
    error: str | None = None
    execution_time_ms: float = 0.0


class GaiaRouting(_Form):
    """`ToolRoutingState`: one selected tool, and what became of it."""

    needs_tool: bool = False
    routing_requested: bool = False
    selected_tool: GaiaTool | None = None
    alternative_tools: tuple[GaiaTool, ...] = ()
    review_confidence: Confidence = 0.0
    review_reasoning: str = ""
    execution_status: ToolExecutionStatus = ToolExecutionStatus.PENDING
    execution_result: GaiaResult | None = None
    reinjection_count: int = Field(default=0, ge=0)
    max_reinjections: int = Field(default=3, ge=0)


class _Routed(_Form):
    tool_routing: GaiaRouting | None = None


def from_gaia(packet: str | bytes | Mapping[str, Any], constants: Mapping[str, Any] | None = None) -> CognitionPacket:
    """Convert a GAIA packet to a `CognitionPacket`. Unknown fields are ignored.

    Args:
        constants: the content of `gaia_constants.json`: its `TOOL_ROUTING` becomes the packet's settings. The packet
            may hold `TOOL_ROUTING` itself.

    Raises:
        PacketError: it is not a packet; the message names the field.
        ConfigError: there is no such setting, or it does not take that value.
    """
    try:
        given = json.loads(packet) if isinstance(packet, str | bytes) else packet
        if not isinstance(given, Mapping):
            raise PacketError(f"not a GAIA packet: it must be an object, not {type(given).__name__}")
        routing = _Routed.model_validate({"tool_routing": given.get("tool_routing")}).tool_routing
        settings = _settings({**given, **(constants or {})}.get(SETTINGS))
        read: dict[str, Any] = {name: _section(name, given.get(name)) for name in _SECTIONS}
        read["tool_routing"] = _read(routing) if routing else None
        read["governance"] = {"dry_run": settings.is_dry_run, "settings": settings}
        return CognitionPacket.model_validate(read, extra="ignore")
    except ValidationError as error:
        raise PacketError(f"not a GAIA packet: {first_problem(error)}") from error
    except (ValueError, RecursionError) as error:  # not JSON, or thousands of brackets
        raise PacketError(f"not a GAIA packet: {error}") from error


def to_gaia(packet: CognitionPacket) -> dict[str, Any]:
    """Convert a packet to the GAIA format, as JSON values, with its settings under `TOOL_ROUTING`.

    The format holds one call, so only the first call is written.
    """
    settings = packet.governance.settings.model_dump(mode="json", include={*_SETTINGS})
    return {
        **packet.model_dump(mode="json", include=_SECTIONS),
        "tool_routing": _written(packet.tool_routing).model_dump(mode="json") if packet.tool_routing else None,
        SETTINGS: {name.upper(): settings[name] for name in _SETTINGS},
    }


def _settings(given: Any) -> RoutingContext:
    if given is None:
        return RoutingContext()
    if not isinstance(given, Mapping):
        raise ConfigError(f"{SETTINGS} must be an object of settings, not {type(given).__name__}")
    known = {name.upper(): name for name in RoutingContext.model_fields}
    if unknown := [name for name in given if name not in known]:
        raise ConfigError(f"{SETTINGS}.{unknown[0]}: there is no such setting: take it out, or use {', '.join(known)}")
    try:
        return RoutingContext.model_validate({known[name]: value for name, value in given.items()})
    except ValidationError as error:
        name, problem = first_problem(error).split(":", 1)
        raise ConfigError(f"{SETTINGS}.{name.upper()}:{problem}") from error


def _section(name: str, given: Any) -> Any:
    """Return the part of a section that both forms have; null stands for what is absent."""
    if not isinstance(given, Mapping):
        return {} if given is None else given
    kept = {field: given[field] for field in _SECTIONS[name] if given.get(field) is not None}
    if name == "status" and isinstance(kept.get("state"), str):
        kept["state"] = kept["state"].lower()
    if name == "reasoning" and isinstance(kept.get("sketchpad"), list):
        kept["sketchpad"] = [_sketch(one) for one in kept["sketchpad"]]
    return kept


def _sketch(given: Any) -> Any:
    """Return a sketch whose content, which GAIA lets be anything, is a text."""
    return {**given, "content": _text(given.get("content"))} if isinstance(given, Mapping) else given


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else compact_json(value)


def _read(given: GaiaRouting) -> ToolRouting:
    tool, status = given.selected_tool, given.execution_status
    calls = () if tool is None else (_call(tool, given),)
    return ToolRouting(
        needs_tool=given.needs_tool,
        routing_requested=given.routing_requested,
        outcome="call" if calls else "none" if status is ToolExecutionStatus.SKIPPED else "pending",
        calls=calls,
        alternative_tools=tuple(
            Alternative(tool_name=one.tool_name, params=one.params, reason=one.selection_reasoning)
            for one in given.alternative_tools
        ),
        pass_status=ToolExecutionStatus.PENDING if calls else status,
        reinjection_count=given.reinjection_count,
        max_reinjections=given.max_reinjections,
    )


def _call(tool: GaiaTool, given: GaiaRouting) -> ToolCall:
    result, content = given.execution_result, given.execution_result and given.execution_result.output
    return ToolCall(
        **dict(tool),
        selection_confidence_source=ConfidenceSource.STATED,
        review_confidence=given.review_confidence,
        review_confidence_source=ConfidenceSource.STATED,
        review_reasoning=given.review_reasoning,
        status=given.execution_status,
        result=result
        and ToolResult(
            success=result.success,
            output=_text(content),
            restated=content if isinstance(content, dict) else None,
            error=result.error,
            execution_time_ms=result.execution_time_ms,
        ),
    )


def _written(routing: ToolRouting) -> GaiaRouting:
    call, status = routing.first_call, routing.execution_status
    return GaiaRouting(
        needs_tool=routing.needs_tool,
        routing_requested=routing.routing_requested,
        selected_tool=call and GaiaTool.model_validate(call.model_dump(include={*GaiaTool.model_fields})),
        alternative_tools=tuple(
            GaiaTool(tool_name=one.tool_name, params=one.params, selection_reasoning=one.reason)
            for one in routing.alternative_tools
        ),
        review_confidence=routing.review_confidence,
        review_reasoning=call.review_reasoning if call else "",
        execution_status=_WRITTEN_AS.get(status, status),
        execution_result=_result(call.result) if call and call.result else None,
        reinjection_count=routing.reinjection_count,
        max_reinjections=routing.max_reinjections,
    )


def _result(result: ToolResult) -> GaiaResult:
    return GaiaResult(
        success=result.success,
        output=result.fields or result.output or None,
        error=result.error,
        execution_time_ms=result.execution_time_ms,
    )
