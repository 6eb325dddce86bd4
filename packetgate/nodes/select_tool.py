"""Which tools, with which arguments? What is chosen here has not run, and may not run yet."""

import asyncio

from langgraph.runtime import Runtime

from packetgate.deciders.outcome import routing_after, routing_from_queue
from packetgate.deciders.protocols import Selection, ToolSelector
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Reflection, Response
from packetgate.tools.approval.parking import replaced
from packetgate.tools.approval.waiting import asking, nobody_to_ask
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox

STAGE = "select_tool"


async def select_tool(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, decider: ToolSelector, toolbox: Toolbox
) -> PacketUpdate:
    """Ask for a selection and check it."""
    context = packet.governance.settings
    if packet.routing.queued_calls:
        return await _from_queue(packet, await toolbox.catalogue(), context)
    catalogue = await toolbox.catalogue()
    selection = await decider(packet, catalogue, context)
    routing = await asyncio.to_thread(routing_after, selection, packet, catalogue, context)
    if routing.outcome == "clarify" and nobody_to_ask(runtime.execution_info):
        routing = routing.ended(selection.question)
    return {
        **(
            {}
            if selection.needs_tool
            else {"intent": packet.intent.without_tool(selection.confidence, selection.confidence_source)}
        ),
        "tool_routing": routing,
        **({"response": _answered(selection)} if selection.text and routing.outcome == "none" else {}),
        **asking(packet, asks=routing.outcome == "clarify"),
        **(replaced(packet) if routing.outcome in ("call", "clarify") else {}),
        "metrics": packet.metrics.spent(STAGE, selection.usage).failed(*selection.errors(STAGE)),
        "reasoning": packet.reasoning.noted(selection.reflection(STAGE, _summary(routing, selection.only_validated))),
    }


def _answered(selection: Selection) -> Response:
    return Response(candidate=selection.text, message_id=selection.message_id)


async def _from_queue(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> PacketUpdate:
    routing = await asyncio.to_thread(routing_from_queue, packet, catalogue, context)
    summary = f"the calls left over from the last pass: {_outcome(routing)}"
    return {
        "tool_routing": routing,
        **asking(packet, asks=False),
        "reasoning": packet.reasoning.noted(Reflection(step=STAGE, summary=summary)),
    }


def _summary(routing: ToolRouting, only_validated: tuple[str, ...]) -> str:
    chosen = _outcome(routing)
    return f"{chosen}; no grammar holds the schema of {', '.join(only_validated)}" if only_validated else chosen


def _outcome(routing: ToolRouting) -> str:
    match routing.outcome:
        case "call":
            return ", ".join(f"{call.tool_name}({', '.join(call.params)})" for call in routing.calls)
        case "clarify":
            return f"asks: {routing.question}"
        case "describe":
            wanted = routing.described_tools
            more = f" and {len(wanted) - 6} more" if len(wanted) > 6 else ""
            return f"wants the full text of {', '.join(wanted[:6]) or 'unknown tools'}{more}"
        case "miss":
            return f"selects again: {_missing(routing)}"
    return f"no tool: {routing.note or 'none is needed'}"


def _missing(routing: ToolRouting) -> str:
    objections = [one.message for one in routing.corrections if one.better_tool and not one.mended]
    if objections:
        return " ".join(objections)
    if routing.missed_tools:
        return f"{', '.join(routing.missed_tools)} is not on the palette"
    return "nothing on the palette fits, so it is widened"
