"""Add the results of all calls to the packet, failed calls included, and count the reinjection."""

from langgraph.runtime import Runtime

from packetgate.ranking.choice import recent_after
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import LEDGER_RESULTS, DataField, LedgerEntry, Sketch
from packetgate.state.transitions import ToolExecutionStatus

_STAGE = "inject_result"
_SUMMARY_CHARS = 300


async def inject_result(packet: CognitionPacket, runtime: Runtime[RoutingContext]) -> PacketUpdate:
    """Write each result as a data field, a sketch and a ledger entry; remember the executed tools."""
    routing, context, content, reasoning = packet.routing, packet.context, packet.content, packet.reasoning
    counted = routing.changed(reinjection_count=routing.reinjection_count + 1)
    executed = [call.tool_name for call in routing.calls if call.status is ToolExecutionStatus.EXECUTED]
    ledger = tuple(
        LedgerEntry(
            packet_id=packet.header.packet_id,
            tool_name=call.tool_name,
            params=call.params,
            status=call.status.value,
            summary=" ".join(call.result_text.split())[:_SUMMARY_CHARS],
            request=packet.intent.user_intent,
        )
        for call in routing.calls
    )
    sketches = tuple(
        Sketch(slot=f"result_{call.call_id[:8]}", content=call.result_text, content_type="tool_output")
        for call in routing.calls
    )
    used = f"{counted.reinjection_count} of {counted.max_reinjections} reinjections used"
    summary = f"{len(executed)} of {len(routing.calls)} succeeded; {used}"
    return {
        "content": content.changed(data_fields=content.data_fields + tuple(map(_data_field, routing.calls))),
        "context": context.changed(
            recent_tools=recent_after(context.recent_tools, executed),
            result_ledger=(context.result_ledger + ledger)[-LEDGER_RESULTS:],
            labels=packet.labels,
        ),
        "tool_routing": counted,
        "reasoning": reasoning.changed(sketchpad=reasoning.sketchpad + sketches).with_summary(_STAGE, summary),
    }


def _data_field(call: ToolCall) -> DataField:
    result = call.result
    executed = call.status is ToolExecutionStatus.EXECUTED
    return DataField(
        key=f"tool_result:{call.call_id}",
        type="tool_execution_result",
        source=call.tool_name,
        value={
            "tool": call.tool_name,
            "params": call.params,
            "status": call.status.value,
            "success": executed,
            "output": result.output if result and executed else None,
            "error": None if executed else call.result_text,
            **({"handle": result.handle} if result and result.handle else {}),
            **({"attachments": result.model_dump(mode="json")["attachments"]} if result and result.attachments else {}),
        },
    )
