"""Run the approved calls of the pass concurrently."""

from langgraph.runtime import Runtime

from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import AuditEntry, Reflection, SystemTask
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.questions import approval_update, nobody_to_ask
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.running import execute_calls, run_dry_runs

_STAGE = "execute_tool"


async def execute_tool(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, toolbox: Toolbox, journal: Journal
) -> PacketUpdate:
    """Execute the approved calls; each ends executed, failed, skipped (dry run) or unknown.

    The user is asked about calls that an interrupted process may have run, after the other calls have ended.
    """
    approved = [call for call in packet.routing.calls if call.status is ToolExecutionStatus.APPROVED]
    catalogue = await toolbox.catalogue()
    finished = await execute_calls(approved, packet, catalogue, toolbox, journal)
    if nobody_to_ask(runtime.execution_info):
        skipped = ToolExecutionStatus.SKIPPED, "nobody can be asked"
        finished = [call.with_decision(*skipped) if call.status.awaits_user else call for call in finished]
    by_id = {call.call_id: call for call in finished}
    calls = tuple(by_id.get(call.call_id, call) for call in packet.routing.calls)
    packet = packet.with_update({"governance": packet.governance.with_audit_entries(*map(_audit_entry, finished))})
    asks = any(call.status.awaits_user for call in finished)
    packet, dry_runs = await run_dry_runs(finished, packet, catalogue, toolbox, journal)
    summary = "; ".join(f"{call.tool_name}: {_outcome_text(call)}" for call in finished or calls)
    return {
        "intent": packet.intent.changed(system_task=SystemTask.TOOL_EXECUTION),
        "tool_routing": packet.routing.changed(calls=calls),
        "governance": packet.governance,
        **(approval_update(finished, packet, catalogue, dry_runs) if asks else {}),
        "reasoning": packet.reasoning.with_reflections(Reflection(step=_STAGE, summary=summary)),
    }


def _audit_entry(call: ToolCall) -> AuditEntry:
    event = "call_unfinished" if call.status.awaits_user else f"call_{call.status}"
    return AuditEntry(event=event, detail=f"{call.tool_name} {_error_text(call)}".strip(), call_id=call.call_id)


def _outcome_text(call: ToolCall) -> str:
    duration = f" in {call.result.execution_time_ms:.0f} ms" if call.result and call.result.success else ""
    dry = " (dry run)" if call.result and call.result.dry_run else ""
    return f"{call.status}{dry}{duration}{f': {_error_text(call)}' if _error_text(call) else ''}"


def _error_text(call: ToolCall) -> str:
    error = call.unfinished_run_text if call.status.awaits_user else call.result.error if call.result else None
    return " ".join(error.split())[:200] if error else ""
