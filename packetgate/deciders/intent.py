"""Decide whether a request needs a tool, if that is certain."""

from packetgate.deciders.protocols import IntentDecision, IntentDetector
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.text.reading import access_of, is_small_talk

_UNSUCCESSFUL = (ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN)


async def detect_certain_intent(
    packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext, *, rules: IntentDetector | None = None
) -> IntentDecision:
    """Decide that no tool is needed if this is certain; otherwise leave the decision to the selection.

    No tool is needed for small talk, without connected tools, or after a complete selection that succeeded.

    Args:
        rules: decide after a selection that does not say whether it is complete.
    """
    request, routing = packet.content.user_words, packet.tool_routing
    if routing is None:
        if is_small_talk(request):
            return intent_decision(False, request, Access.READ, "small talk")
        if not await toolbox.catalogue():
            return intent_decision(False, request, Access.READ, "no tools are connected")
        return intent_decision(True, request, access_of(request), "the selection decides whether a tool is needed")
    if routing.complete is None and rules is not None:
        return await rules(packet, toolbox, context)
    access, failed = packet.intent.access, any(call.status in _UNSUCCESSFUL for call in routing.calls)
    if routing.complete and not failed:
        return intent_decision(False, request, access, "the selection marked these calls as complete")
    why = "a call did not succeed" if failed else "the model reads the results, and may select more calls"
    return intent_decision(True, request, access, why)


def intent_decision(needs_tool: bool, request: str, access: Access, why: str) -> IntentDecision:
    """Return an intent decision that was made by rule."""
    intent = " ".join(request.split())[:200]
    return IntentDecision(needs_tool=needs_tool, user_intent=intent, access=access, reasoning=why, decided_by="reflex")
