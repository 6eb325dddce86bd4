"""Run what may run, all calls of the pass at once."""

from langgraph.runtime import Runtime

from packetgate.deciders.chains import steps_after
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import AuditEntry, Reflection, SystemTask
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.waiting import asking_about, nobody_to_ask
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.running import execute_all, rehearse

STAGE = "execute_tool"


async def execute_tool(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, toolbox: Toolbox, journal: Journal
) -> PacketUpdate:
    """Execute the approved calls; each ends executed, failed, skipped (dry run) or unknown.

    What a process that ended in the middle may have run is asked about, once the others have ended.
    """
    approved = [call for call in packet.routing.calls if call.status is ToolExecutionStatus.APPROVED]
    catalogue = await toolbox.catalogue()
    done = await execute_all(approved, packet, catalogue, toolbox, journal)
    if nobody_to_ask(runtime.execution_info):
        unasked = ToolExecutionStatus.SKIPPED, "nobody can be asked"
        done = [call.decided(*unasked) if call.status.awaits_user else call for call in done]
    by_id = {call.call_id: call for call in done}
    calls = tuple(by_id.get(call.call_id, call) for call in packet.routing.calls)
    trail = tuple(
        AuditEntry(
            event=_event(call),
            detail=" ".join(filter(None, (call.tool_name, _error(call)))),
            call_id=call.call_id,
        )
        for call in done
    )
    packet = packet.merged({"governance": packet.governance.audited(*trail)})
    asks = any(call.status.awaits_user for call in done)
    packet, dry_runs = await rehearse(done, packet, catalogue, toolbox, journal)
    return {
        "intent": packet.intent.now_at(SystemTask.TOOL_EXECUTION),
        "tool_routing": packet.routing.with_calls(calls).followed_by(steps_after(done, catalogue)),
        "governance": packet.governance,
        **(asking_about(done, packet, catalogue, dry_runs) if asks else {}),
        "reasoning": packet.reasoning.noted(
            Reflection(step=STAGE, summary="; ".join(f"{call.tool_name}: {_outcome(call)}" for call in done or calls))
        ),
    }


def _event(call: ToolCall) -> str:
    if call.status.awaits_user:
        return "call_unfinished"
    return f"call_{call.status}"


def _outcome(call: ToolCall) -> str:
    took = f" in {call.result.execution_time_ms:.0f} ms" if call.result and call.result.success else ""
    dry = " (dry run)" if call.result and call.result.dry_run else ""
    return f"{call.status}{dry}{took}{f': {_error(call)}' if _error(call) else ''}"


def _error(call: ToolCall) -> str:
    error = call.doubt if call.status.awaits_user else call.result.error if call.result else None
    return " ".join(error.split())[:200] if error else ""
