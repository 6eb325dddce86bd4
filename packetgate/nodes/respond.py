"""Answer the user. Neither tool markup nor a foreign address that a front end would fetch reaches them."""

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from packetgate.deciders.protocols import Answer, Responder
from packetgate.models.markup.links import inert
from packetgate.state.context import RoutingContext
from packetgate.state.packet import WORDS, CognitionPacket, PacketUpdate
from packetgate.state.sections import PacketState, Response, Status
from packetgate.tools.catalogue.toolbox import Toolbox

STAGE = "respond"


async def respond(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, decider: Responder, toolbox: Toolbox
) -> PacketUpdate:
    """Write the answer from the packet alone."""
    answer = await decider(packet, toolbox.known, packet.governance.settings)
    text, violations = _without_markup(answer, packet.spoken) if answer.decided_by == "model" else (answer.text, 0)
    dropped = "".join(f"Dropped: {what}.\n\n" for what in packet.governance.dropped)
    shown = inert(dropped + (answer.markdown or text) + answer.below, packet.spoken)
    kept = _kept(packet)
    shown += kept
    words = {WORDS: text} if answer.below else {}
    told = dropped + answer.text + kept if answer.markdown else shown
    cut = f", {violations} pieces of tool markup cut out" if violations else ""
    return {
        "response": Response(candidate=told, confidence=answer.confidence),
        "messages": [AIMessage(shown, id=answer.message_id, additional_kwargs=words)],
        "metrics": packet.metrics.spent(STAGE, answer.usage).failed(*answer.errors(STAGE)).violated(violations),
        "status": Status(state=PacketState.COMPLETED),
        "reasoning": packet.reasoning.noted(answer.reflection(STAGE, f"{len(shown):,} characters{cut}")),
    }


def _without_markup(answer: Answer, request: str) -> tuple[str, int]:
    """Return (what a model wrote without tool markup, how many pieces had to go)."""
    from packetgate.models.markup.stripping import (  # here, because it takes some hundred patterns
        NOTHING_LEFT,
        strip_markup,
    )

    clean = strip_markup(answer.text, request)
    return clean.text or NOTHING_LEFT, clean.violations


def _kept(packet: CognitionPacket) -> str:
    """Say where the whole of results is that were too long to be shown, and which were read earlier."""
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    results = [(call.tool_name, call.result) for call in calls if call.result]
    told = [
        f"\n\n[{tool}: all of its result can be read as {result.handle}]" for tool, result in results if result.handle
    ]
    return "".join(told)
