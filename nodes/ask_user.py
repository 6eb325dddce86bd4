"""Ask the user, and take their word. Nothing else happens here: a resumed node runs again from its start."""

import asyncio

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from state.context import RoutingContext, routing_context
from state.errors import RequestError
from state.packet import CognitionPacket, PacketUpdate
from state.sections import PacketState, Reflection, Status
from state.transitions import ToolExecutionStatus
from tools.approval.decisions import answered, apply_replies, expired
from tools.approval.preview import previews
from tools.approval.questions import approval_payload, parse_answer, question_payload
from tools.approval.waiting import has_expired
from tools.catalogue.toolbox import Toolbox

STAGE = "ask_user"


async def ask_user(packet: CognitionPacket, runtime: Runtime[RoutingContext], *, toolbox: Toolbox) -> PacketUpdate:
    """Interrupt with the pending question; a reply that cannot be read is asked for again, saying why."""
    problem = ""
    expires = packet.governance.ask_expires_at
    question = packet.routing.question if packet.routing.outcome == "clarify" else None
    waiting = [call for call in packet.routing.calls if call.status.awaits_user]
    shown = await previews(waiting, toolbox, routing_context(runtime.context))
    while True:
        reply = interrupt(
            question_payload(question, expires, problem)
            if question
            else approval_payload(waiting, shown, expires, problem)
        )
        if has_expired(packet):
            return _told(packet, expired(packet), "the question lapsed unanswered")
        try:
            if question:
                return _told(packet, answered(packet, parse_answer(reply)), "the user answered")
            update = await asyncio.to_thread(apply_replies, packet, reply, await toolbox.catalogue())
            return _told(packet, update, "the user decided")
        except RequestError as error:
            problem = str(error)


def _told(packet: CognitionPacket, update: PacketUpdate, what: str) -> PacketUpdate:
    routing = update.get("tool_routing") or packet.routing
    outcomes = ", ".join(f"{call.tool_name}: {call.status.replace('_', ' ')}" for call in routing.calls)
    skipped = routing.pass_status is ToolExecutionStatus.SKIPPED and not routing.calls
    return {
        **update,
        "governance": (update.get("governance") or packet.governance).asking_until(None),
        "status": Status(state=PacketState.PROCESSING),
        "reasoning": packet.reasoning.noted(
            Reflection(
                step=STAGE, summary=f"{what}: {outcomes or (routing.note if skipped else packet.routing.question)}"
            )
        ),
    }
