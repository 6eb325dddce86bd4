"""Intent where a language model selects: it costs no question of its own, as a selection may choose no tool."""

from packetgate.deciders.protocols import IntentDecision
from packetgate.deciders.reflex.intent import detect_by_reflex
from packetgate.deciders.reflex.reading import access_of, is_small_talk
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.toolbox import Toolbox

_WRONG = (ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN)
"""After which another call may be wanted. A dry run has done what it could."""


async def left_to_selection(packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
    """Say what is certain, and leave the rest to selection.

    Certain is small talk, that nothing is connected, and that the selection said its calls were all, where none of them
    went wrong. Where it did not say, the words of the request tell whether a step of it is still open.
    """
    request, routing = packet.content.user_words, packet.tool_routing
    if routing is None:
        if is_small_talk(request):
            return _decided(False, request, Access.READ, "small talk")
        if not await toolbox.catalogue():
            return _decided(False, request, Access.READ, "no tools are connected")
        return _decided(True, request, access_of(request), "selection decides, which may choose none")
    if routing.complete is None:
        return await detect_by_reflex(packet, toolbox, context)
    wrong = any(call.status in _WRONG for call in routing.calls)
    if routing.complete and not wrong:
        return _decided(False, request, packet.intent.access, "the selection said that these calls are all it takes")
    open_ = "a call did not succeed" if wrong else "what decides sees the results first"
    return _decided(True, request, packet.intent.access, open_)


def _decided(needs_tool: bool, request: str, access: Access, why: str) -> IntentDecision:
    return IntentDecision(
        needs_tool=needs_tool,
        user_intent=" ".join(request.split())[:200],
        access=access,
        reasoning=why,
        decided_by="reflex",
    )
