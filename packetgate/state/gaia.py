"""Read and write packets in the GAIA format, with its `TOOL_ROUTING` settings."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from packetgate.state.base import ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, PacketError, first_problem
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json
from packetgate.state.routing import ToolRouting
from packetgate.state.transitions import ToolExecutionStatus

SETTINGS_KEY = "TOOL_ROUTING"
_SETTINGS = (
    *("enabled", "selection_temperature", "review_temperature", "confidence_threshold", "max_reinjections"),
    *("allow_write_tools", "allow_execute_tools"),
)
"""Settings that are written to `TOOL_ROUTING`, with names in capitals."""
_SAME: dict[str, dict[str, Any]] = {
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
"""Fields with the same name in both formats."""
_ROUTING = ("needs_tool", "routing_requested", "reinjection_count", "max_reinjections")
"""Fields of `tool_routing` with the same name in both formats."""
_CALL = ("tool_name", "params", "selection_reasoning", "selection_confidence")
"""Fields of a call that GAIA writes in `selected_tool`."""
_WRITTEN_AS = {ToolExecutionStatus.AWAITING_APPROVAL: "pending", ToolExecutionStatus.UNKNOWN: "failed"}
"""Statuses that GAIA does not have, with the statuses that are written instead."""


def from_gaia(packet: str | bytes | Mapping[str, Any], constants: Mapping[str, Any] | None = None) -> CognitionPacket:
    """Convert a GAIA packet to a `CognitionPacket`. Unknown fields are ignored.

    Args:
        constants: the content of `gaia_constants.json`: its `TOOL_ROUTING` becomes the packet's settings. The packet
            may contain `TOOL_ROUTING` itself.

    Raises:
        PacketError: the data is not a packet; the message names the field.
        ConfigError: a setting does not exist, or does not accept its value.
    """
    try:
        document = json.loads(packet) if isinstance(packet, str | bytes) else packet
        if not isinstance(document, Mapping):
            raise PacketError(f"not a GAIA packet: it must be an object, not {type(document).__name__}")
        settings = _settings({**document, **(constants or {})}.get(SETTINGS_KEY))
        sections: dict[str, Any] = {name: _section(name, document.get(name)) for name in _SAME}
        routing = document.get("tool_routing")
        sections["tool_routing"] = _routing(routing) if isinstance(routing, Mapping) else routing
        sections["governance"] = {"dry_run": settings.is_dry_run, "settings": settings}
        return CognitionPacket.model_validate(sections)
    except ValidationError as error:
        raise PacketError(f"not a GAIA packet: {first_problem(error)}") from error
    except (ValueError, RecursionError) as error:  # not JSON, or thousands of brackets
        raise PacketError(f"not a GAIA packet: {error}") from error


def to_gaia(packet: CognitionPacket) -> dict[str, Any]:
    """Convert a packet to the GAIA format, as JSON values, with its settings under `TOOL_ROUTING`.

    The format has one call, so only the first call is written.
    """
    settings, routing = packet.governance.settings, packet.tool_routing
    return {
        **packet.model_dump(mode="json", include=_SAME),
        "tool_routing": None if routing is None else _written_routing(routing),
        SETTINGS_KEY: {name.upper(): getattr(settings, name) for name in _SETTINGS},
    }


def _written_routing(routing: ToolRouting) -> dict[str, Any]:
    call, result = routing.first_call, routing.execution_result
    return {
        **{name: getattr(routing, name) for name in _ROUTING},
        "selected_tool": call and call.model_dump(mode="json", include={*_CALL}),
        "alternative_tools": [
            {
                **alternative.model_dump(mode="json", include={"tool_name", "params"}),
                "selection_reasoning": alternative.reason,
                "selection_confidence": 0.0,
            }
            for alternative in routing.alternative_tools
        ],
        "review_confidence": routing.review_confidence,
        "review_reasoning": call.review_reasoning if call else "",
        "execution_status": _WRITTEN_AS.get(routing.execution_status, routing.execution_status.value),
        "execution_result": result
        and {
            **result.model_dump(mode="json", include={"success", "error", "execution_time_ms"}),
            "output": result.fields or result.output or None,
        },
    }


def _settings(value: Any) -> RoutingContext:
    if value is None:
        return RoutingContext()
    if not isinstance(value, Mapping):
        raise ConfigError(f"{SETTINGS_KEY} must be an object of settings, not {type(value).__name__}")
    try:
        return RoutingContext.model_validate({name.lower(): setting for name, setting in value.items()})
    except ValidationError as error:
        name, problem = first_problem(error).split(":", 1)
        raise ConfigError(f"{SETTINGS_KEY}.{name.upper()}:{problem}") from error


def _section(name: str, section: Any) -> Any:
    if not isinstance(section, Mapping):
        return {} if section is None else section
    fields = {field: section[field] for field in _SAME[name] if section.get(field) is not None}
    if isinstance(fields.get("state"), str):
        fields["state"] = fields["state"].lower()
    if isinstance(fields.get("sketchpad"), list):
        fields["sketchpad"] = [
            {**slot, "content": _text(slot.get("content"))} if isinstance(slot, Mapping) else slot
            for slot in fields["sketchpad"]
        ]
    return fields


def _routing(routing: Mapping[str, Any]) -> dict[str, Any]:
    tool, status = routing.get("selected_tool"), routing.get("execution_status", "pending")
    calls = [{**{name: tool[name] for name in _CALL if name in tool}, **_outcome(routing)}] if tool else []
    return {
        **{name: routing[name] for name in _ROUTING if name in routing},
        "outcome": "call" if calls else "none" if status == "skipped" else "pending",
        "calls": calls,
        "alternative_tools": [
            {**alternative, "reason": alternative.get("selection_reasoning", "")}
            for alternative in routing.get("alternative_tools") or ()
        ],
        "pass_status": "pending" if calls else status,
    }


def _outcome(routing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a call that GAIA writes in addition to `selected_tool`."""
    result = routing.get("execution_result")
    if isinstance(result, Mapping):
        output = result.get("output")
        structured = output if isinstance(output, dict) else None
        result = {
            **{name: result[name] for name in ("success", "error", "execution_time_ms") if name in result},
            "output": _text(output),
            "structured_in_output": structured,
        }
    return {
        "selection_confidence_source": ConfidenceSource.STATED,
        "review_confidence": routing.get("review_confidence", 0.0),
        "review_confidence_source": ConfidenceSource.STATED,
        "review_reasoning": routing.get("review_reasoning", ""),
        "status": routing.get("execution_status", "pending"),
        "result": result,
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else compact_json(value)
