"""Select tools and arguments. Nothing runs here."""

import asyncio

from langgraph.runtime import Runtime

from packetgate.deciders.commands import command_selection
from packetgate.deciders.outcome import routing_after_selection, routing_from_queue
from packetgate.deciders.packets import facts_of, text_question
from packetgate.deciders.protocols import ToolSelector
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Response, SystemTask
from packetgate.tools.catalogue.toolbox import Toolbox

_STAGE = "select_tool"


async def select_tool(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, decider: ToolSelector, toolbox: Toolbox
) -> PacketUpdate:
    """Ask the decider for a selection and check it. Queued calls are used without a selection."""
    settings, catalogue = packet.governance.settings, await toolbox.catalogue()
    if packet.routing.queued_calls:
        routing = routing_from_queue(packet, settings)
        summary = f"queued calls from the last pass: {_outcome_text(routing)}"
        return {
            "tool_routing": routing,
            **text_question(packet, asks=False),
            "reasoning": packet.reasoning.with_summary(_STAGE, summary),
        }
    selection = await asyncio.to_thread(command_selection, packet, catalogue)
    selection = selection or await decider(packet, catalogue, settings)
    called = [name for call in selection.calls if (name := catalogue.canonical(call.tool_name))]
    started = await toolbox.catalogue(called=called) if called else catalogue
    if outdated := [name for name in called if name not in started or started[name].digest != catalogue[name].digest]:
        routing = packet.routing.for_new_selection().after_miss(tuple(outdated))  # unlike at the server's last start
    else:
        routing = await asyncio.to_thread(routing_after_selection, selection, packet, started, settings)
    if routing.outcome == "clarify" and not facts_of(packet, catalogue, runtime.execution_info).can_ask:
        routing = routing.ended_without_call(selection.question)
    update: PacketUpdate = {"tool_routing": routing, **text_question(packet, asks=routing.outcome == "clarify")}
    if selection.offered_tools:
        update["context"] = packet.context.changed(offered_tools=selection.offered_tools)
    if not selection.needs_tool:
        update["intent"] = packet.intent.changed(
            needs_tool=False,
            system_task=SystemTask.GENERATE_DRAFT,
            confidence=selection.confidence,
            confidence_source=selection.confidence_source,
        )
    if selection.text and routing.outcome == "none":
        update["response"] = Response(candidate=selection.text, message_id=selection.message_id)
    if packet.is_parked and routing.outcome in ("call", "clarify"):  # the new calls replace the parked ones
        update["parked_turns"] = packet.parked_turns[:-1]
    update["metrics"] = packet.metrics.with_tokens(_STAGE, selection.usage).with_errors(*selection.errors(_STAGE))
    update["reasoning"] = packet.reasoning.with_reflections(selection.reflection(_STAGE, _outcome_text(routing)))
    return update


def _outcome_text(routing: ToolRouting) -> str:
    match routing.outcome:
        case "call":
            return ", ".join(f"{call.tool_name}({', '.join(call.params)})" for call in routing.calls)
        case "clarify":
            return f"asks: {routing.question}"
        case "describe":
            tools = routing.described_tools
            more = f" and {len(tools) - 6} more" if len(tools) > 6 else ""
            return f"requests the full description of {', '.join(tools[:6]) or 'unknown tools'}{more}"
        case "miss":
            missed = routing.missed_tools and f"not on the palette: {', '.join(routing.missed_tools)}"
            return f"selects again: {missed or 'no tool on the palette fits, so the palette is widened'}"
    return f"no tool: {routing.note or 'none is needed'}"
