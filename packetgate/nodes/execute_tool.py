"""Run the approved calls of the pass concurrently."""

from langgraph.runtime import Runtime

from packetgate.deciders.packets import facts_of, proposal_of, update_of
from packetgate.gate.gate import Gate, error_line
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import SystemTask
from packetgate.tools.catalogue.toolbox import PausedCallError, Toolbox

_STAGE = "execute_tool"


async def execute_tool(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, toolbox: Toolbox, gate: Gate
) -> PacketUpdate:
    """Execute the approved calls; each ends executed, failed, skipped (dry run) or unknown.

    Calls that an interrupted process may have run need approval, after the other calls have ended. A tool
    that interrupts its call interrupts the graph here; the calls that stay approved run in the next visit.
    """
    catalogue = await toolbox.catalogue(called=[call.tool_name for call in packet.routing.calls])
    facts = facts_of(packet, catalogue, runtime.execution_info)
    try:
        proposal = await gate.run(proposal_of(packet, facts))
    except PausedCallError as paused:
        raise paused.signal from None
    proposal = await gate.ask(proposal) if proposal.waiting else proposal
    summary = "; ".join(f"{call.tool_name}: {_outcome_text(call)}" for call in proposal.calls)
    return {
        **update_of(packet, proposal),
        "intent": packet.intent.changed(system_task=SystemTask.TOOL_EXECUTION),
        "reasoning": packet.reasoning.with_summary(_STAGE, summary),
    }


def _outcome_text(call: ToolCall) -> str:
    duration = f" in {call.result.execution_time_ms:.0f} ms" if call.result and call.result.success else ""
    dry = " (dry run)" if call.result and call.result.dry_run else ""
    return f"{call.status}{dry}{duration}{f': {error_line(call)}' if error_line(call) else ''}"
