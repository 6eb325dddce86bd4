"""Decide whether the request needs a tool, or another tool after a result."""

from langgraph.runtime import Runtime

from packetgate.deciders.commands import COMMAND
from packetgate.deciders.intent import intent_decision
from packetgate.deciders.protocols import IntentDecision, IntentDetector
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import Risk, ToolRouting
from packetgate.state.sections import Access, Intent, SystemTask
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.text.reading import is_small_talk

_STAGE = "detect_intent"


async def detect_intent(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, decider: IntentDetector, toolbox: Toolbox
) -> PacketUpdate:
    """Detect the intent, and open a pass if the request needs a tool and the limit of passes allows another pass."""
    settings, is_command = packet.governance.settings, packet.content.command is not None
    is_request = settings.enabled and not is_command and not is_small_talk(packet.content.original_prompt)
    decision = _decision_without_decider(packet, toolbox, settings) or await decider(packet, toolbox, settings)
    is_starting = bool(toolbox.last_catalogue) and any(server.is_unknown for server in toolbox.health())
    if is_starting and packet.tool_routing is None and is_request and not decision.needs_tool:
        await toolbox.catalogue(wait_for_all=True)
        decision = await decider(packet, toolbox, settings)
    routing, capped = packet.tool_routing, False
    if decision.needs_tool:
        routing = routing.next_pass() if routing else ToolRouting(max_reinjections=settings.max_reinjections)
        capped = routing.is_at_reinjection_limit
        routing = routing.stopped_at_limit() if capped else routing
    # otherwise build_palette reports the problems of servers
    servers = toolbox.health() if is_request and not decision.needs_tool else ()
    summary = f"needs a tool ({decision.access})" if decision.needs_tool else "needs no tool"
    summary += ", but the limit of passes is reached" if capped else ""
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
        **({"context": packet.context.changed(servers=servers)} if servers else {}),
        "metrics": packet.metrics.with_tokens(_STAGE, decision.usage)
        .with_errors(*decision.errors(_STAGE))
        .with_server_problems(_STAGE, servers),
        "reasoning": packet.reasoning.with_reflections(
            decision.reflection(_STAGE, f"{summary}: {decision.reasoning or decision.user_intent}")
        ),
    }


def _decision_without_decider(
    packet: CognitionPacket, toolbox: Toolbox, settings: RoutingContext
) -> IntentDecision | None:
    """Return the decision if tools are off, calls are queued, or the user typed a command; None without one."""
    queued = packet.tool_routing.queued_calls if packet.tool_routing else ()
    command = packet.content.command
    if settings.enabled and not queued and command is not None:
        is_call = packet.tool_routing is None and bool(command.tool_name)
        spec = toolbox.last_catalogue.get(command.tool_name)
        access = Access(spec.risk if spec else Risk.READ)
        return intent_decision(is_call, packet.content.original_prompt, access, COMMAND)
    if settings.enabled and not queued:
        return None
    return IntentDecision(
        needs_tool=bool(queued),
        user_intent=packet.intent.user_intent or packet.content.original_prompt[:200],
        access=packet.intent.access,
        reasoning=f"{len(queued)} selected calls are still queued" if queued else "tool routing is switched off",
        decided_by="reflex",
    )
