"""Packets in the GAIA format: reading, writing, and lossless round trips."""

import json
from typing import Any

import pytest

from packetgate.state.context import RoutingContext
from packetgate.state.errors import ConfigError, PacketError
from packetgate.state.gaia import from_gaia, to_gaia
from packetgate.state.packet import CognitionPacket, read_packet
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.state.sections import PacketState, SystemTask
from packetgate.state.transitions import ToolExecutionStatus

PACKET: dict[str, Any] = {
    "header": {"packet_id": "p-7", "session_id": "s-1"},
    "intent": {"user_intent": "tool_routing", "system_task": "ToolRouting"},
    "context": {"available_mcp_tools": ["ai.read", "embedding.query"]},
    "content": {
        "original_prompt": "What does the plan say about roses?",
        "data_fields": [
            {
                "key": "tool_result",
                "value": {"tool": "ai.read"},
                "type": "tool_execution_result",
                "source": "mcp_client",
            }
        ],
    },
    "reasoning": {
        "reflection_log": [{"step": "tool_routing", "summary": "ai.read fits", "confidence": 0.8}],
        "sketchpad": [{"slot": "latest_tool_result", "content": '{"ok":true}', "content_type": "tool_output"}],
    },
    "status": {"state": "processing"},
    "tool_routing": {
        "needs_tool": True,
        "routing_requested": True,
        "selected_tool": {
            "tool_name": "ai.read",
            "params": {"path": "/docs/plan.md"},
            "selection_reasoning": "the plan is a file",
            "selection_confidence": 0.9,
        },
        "alternative_tools": [
            {
                "tool_name": "embedding.query",
                "params": {"query": "roses", "top_k": 5},
                "selection_reasoning": "it finds passages",
                "selection_confidence": 0.0,
            }
        ],
        "review_confidence": 0.85,
        "review_reasoning": "harmless",
        "execution_status": "executed",
        "execution_result": {
            "success": True,
            "output": {"ok": True, "content": "Water the roses at eight.", "lines": [1, 2]},
            "error": None,
            "execution_time_ms": 12,
        },
        "reinjection_count": 1,
        "max_reinjections": 3,
    },
}
CONSTANTS: dict[str, Any] = {
    "TOOL_ROUTING": {
        "ENABLED": True,
        "SELECTION_TEMPERATURE": 0.1,
        "REVIEW_TEMPERATURE": 0.2,
        "CONFIDENCE_THRESHOLD": 0.75,
        "MAX_REINJECTIONS": 2,
        "ALLOW_WRITE_TOOLS": True,
        "ALLOW_EXECUTE_TOOLS": False,
    }
}


def test_a_packet_is_read_and_written_without_loss():
    packet = from_gaia(json.dumps(PACKET), CONSTANTS)
    assert to_gaia(packet) == PACKET | CONSTANTS
    assert to_gaia(from_gaia(to_gaia(packet))) == PACKET | CONSTANTS
    assert read_packet(packet.model_dump_json()) == packet


def test_gaia_fields_are_read_into_the_packet_sections():
    packet = from_gaia(PACKET, CONSTANTS | {"OTHER": 1})
    assert packet.governance.settings == RoutingContext(
        selection_temperature=0.1,
        review_temperature=0.2,
        confidence_threshold=0.75,
        max_reinjections=2,
        allow_write_tools=True,
    )
    assert not packet.governance.dry_run
    (call,) = packet.routing.calls
    assert (call.tool_name, call.params, call.status) == (
        "ai.read",
        {"path": "/docs/plan.md"},
        ToolExecutionStatus.EXECUTED,
    )
    assert (call.selection_confidence, call.review_confidence, call.review_reasoning) == (0.9, 0.85, "harmless")
    assert call.result
    assert call.result.structured_in_output == PACKET["tool_routing"]["execution_result"]["output"]
    assert "Water the roses" in call.result.output
    assert [one.line for one in packet.routing.alternative_tools] == [
        "embedding.query(query=roses, top_k=5): it finds passages"
    ]
    assert (packet.intent.system_task, packet.status.state) == (SystemTask.TOOL_ROUTING, PacketState.PROCESSING)


def test_unknown_fields_and_nulls_are_ignored():
    more = {
        "header": {"packet_id": "p-7", "version": "9.9", "persona": {"identity_id": "x"}},
        "context": {"available_mcp_tools": None, "constraints": {"max_tokens": 5}},
        "reasoning": {"sketchpad": [{"slot": "a", "content": {"b": 1}, "timestamp": "now"}]},
        "status": {"state": "PROCESSING"},
        "metrics": {"latency_ms": 7},
        "tool_routing": None,
    }
    packet = from_gaia(more)
    assert (packet.header.packet_id, packet.tool_routing) == ("p-7", None)
    assert packet.reasoning.sketchpad[0].content == '{"b":1}'
    assert to_gaia(packet)["tool_routing"] is None


@pytest.mark.parametrize(
    ("ours", "written"),
    [(ToolExecutionStatus.AWAITING_APPROVAL, "pending"), (ToolExecutionStatus.UNKNOWN, "failed")],
)
def test_a_status_that_gaia_lacks_is_written_as_a_weaker_status(ours: ToolExecutionStatus, written: str):
    packet = CognitionPacket(tool_routing=ToolRouting(calls=(ToolCall(tool_name="a.b", status=ours),)))
    assert to_gaia(packet)["tool_routing"]["execution_status"] == written


@pytest.mark.parametrize(
    ("packet", "field"),
    [
        ("{", ""),
        ("[]", "list"),
        ({"header": 7}, "header"),
        ({"tool_routing": {"selected_tool": {"tool_name": "a"}, "review_confidence": 2}}, "review_confidence"),
        ({"tool_routing": {"execution_status": "done"}}, "tool_routing.pass_status"),
        ({"tool_routing": {"alternative_tools": [{"params": {}}]}}, "tool_routing.alternative_tools.0.tool_name"),
        ({"status": {"state": "teleporting"}}, "status.state"),
    ],
)
def test_the_invalid_field_is_named(packet: Any, field: str):
    with pytest.raises(PacketError, match=field):
        from_gaia(packet)


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"COLOUR": "red"}, "COLOUR"), ({"CONFIDENCE_THRESHOLD": 7}, "CONFIDENCE_THRESHOLD"), ([], "TOOL_ROUTING")],
)
def test_the_invalid_setting_is_named(settings: Any, name: str):
    with pytest.raises(ConfigError, match=name):
        from_gaia(PACKET, {"TOOL_ROUTING": settings})
