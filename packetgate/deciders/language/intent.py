"""Intent with a language model: without a model call, because a selection may choose no tool."""

from packetgate.deciders.protocols import IntentDecision
from packetgate.deciders.reflex.intent import detect_by_reflex, intent_decision
from packetgate.deciders.reflex.reading import access_of, is_small_talk
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.toolbox import Toolbox

_WRONG = (ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN)


async def left_to_selection(packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
    """Decide what is certain: small talk, no tools, or a complete selection that succeeded. Selection does the rest."""
    request, routing = packet.content.user_words, packet.tool_routing
    if routing is None:
        if is_small_talk(request):
            return intent_decision(False, request, Access.READ, "small talk")
        if not await toolbox.catalogue():
            return intent_decision(False, request, Access.READ, "no tools are connected")
        return intent_decision(True, request, access_of(request), "selection decides, which may choose none")
    if routing.complete is None:
        return await detect_by_reflex(packet, toolbox, context)
    access, failed = packet.intent.access, any(call.status in _WRONG for call in routing.calls)
    if routing.complete and not failed:
        return intent_decision(False, request, access, "the selection said that these calls are all it takes")
    why = "a call did not succeed" if failed else "the model sees the results first"
    return intent_decision(True, request, access, why)
