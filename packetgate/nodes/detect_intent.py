"""Does the request need a tool, and on a later pass: one more?"""

from langgraph.runtime import Runtime

from packetgate.deciders.protocols import IntentDecision, IntentDetector
from packetgate.deciders.reflex.reading import is_small_talk
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolRouting
from packetgate.state.sections import Intent, SystemTask
from packetgate.tools.catalogue.toolbox import Toolbox

STAGE = "detect_intent"


async def detect_intent(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, decider: IntentDetector, toolbox: Toolbox
) -> PacketUpdate:
    """Judge the request; open a pass when it needs a tool and the cap allows one."""
    context = packet.governance.settings
    decision = _without_asking(packet, context) or await decider(packet, toolbox, context)
    if context.enabled and not decision.needs_tool and _may_be_served(packet, toolbox):
        await toolbox.catalogue(patient=True)
        decision = await decider(packet, toolbox, context)
    routing = _next_pass(packet, context) if decision.needs_tool else packet.tool_routing
    capped = decision.needs_tool and routing is not None and routing.capped
    if routing is not None and capped:
        routing = routing.stopped_at_cap()
    looked = not decision.needs_tool and context.enabled and not is_small_talk(packet.content.original_prompt)
    servers = toolbox.health() if looked else ()  # for what needs a tool, the palette's stage says it
    wants = f"needs a tool ({decision.access})" if decision.needs_tool else "needs no tool"
    wants += ", but the cap is reached" if capped else ""
    return {
        "intent": Intent(
            user_intent=decision.user_intent,
            system_task=SystemTask.TOOL_ROUTING if decision.needs_tool else SystemTask.GENERATE_DRAFT,
            access=decision.access if decision.needs_tool or packet.tool_routing is None else packet.intent.access,
            needs_tool=decision.needs_tool,
            confidence=decision.confidence,
            confidence_source=decision.confidence_source,
        ),
        "tool_routing": routing,
        **({"context": packet.context.having_seen(servers)} if servers else {}),
        "metrics": packet.metrics.spent(STAGE, decision.usage)
        .failed(*decision.errors(STAGE))
        .unreached(STAGE, servers),
        "reasoning": packet.reasoning.noted(
            decision.reflection(STAGE, f"{wants}: {decision.reasoning or decision.user_intent}")
        ),
    }


def _may_be_served(packet: CognitionPacket, toolbox: Toolbox) -> bool:
    """Whether a tool of a server that is still starting might be what is asked for."""
    starting = bool(toolbox.known) and any(one.state == "connecting" for one in toolbox.health())
    return starting and packet.tool_routing is None and not is_small_talk(packet.content.original_prompt)


def _next_pass(packet: CognitionPacket, context: RoutingContext) -> ToolRouting:
    last = packet.tool_routing
    return last.next_pass() if last else ToolRouting(max_reinjections=context.max_reinjections)


def _without_asking(packet: CognitionPacket, context: RoutingContext) -> IntentDecision | None:
    """Return what is certain: that no tools are wanted, or that chosen calls wait for their pass."""
    queued = packet.tool_routing.queued_calls if packet.tool_routing else ()
    if context.enabled and not queued:
        return None
    return IntentDecision(
        needs_tool=bool(queued),
        user_intent=packet.intent.user_intent or packet.content.original_prompt[:200],
        access=packet.intent.access,
        reasoning=f"{len(queued)} of the chosen calls are still to be made"
        if queued
        else "tool routing is switched off",
        decided_by="reflex",
    )
