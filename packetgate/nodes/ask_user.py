"""Ask the user and apply the answer. This node does nothing else, because a resumed node runs again from its start."""

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from packetgate.deciders.replies import ReplyReader, TypedReply
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.request import TurnRequest
from packetgate.state.sections import ApprovalOutcome, OpenQuestion, PacketState, Reflection, Status
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.decisions import (
    ALREADY_ANSWERED,
    CALL_CHANGED,
    check_reply_target,
    claim,
    effects_of_reply,
    expire_question,
    update_for_new_review,
)
from packetgate.tools.approval.questions import interrupt_payload, parked_turns
from packetgate.tools.approval.replies import reply_text
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.execution.journal import Journal

_STAGE = "ask_user"


async def ask_user(
    packet: CognitionPacket,
    runtime: Runtime[RoutingContext],
    *,
    toolbox: Toolbox,
    journal: Journal,
    replies: ReplyReader,
) -> PacketUpdate:
    """Interrupt with the open question. An unusable answer repeats the question with the reason."""
    question = packet.governance.question
    if question is None:
        raise ValueError("ask_user runs only with an open question")
    typed = question.reply
    reply = typed or interrupt(interrupt_payload(packet, question))
    try:
        check_reply_target(reply, question, packet)
    except RequestError as error:
        return _ask_again(packet, {}, question, str(error))
    catalogue = await toolbox.catalogue()
    words = reply_text(reply, max(len(question.calls), 1))
    classified = await replies.classify(words, packet, catalogue) if words else TypedReply("reply", reply)
    if classified.kind == "request":
        return _new_request(packet, words, is_message=bool(typed))
    if question.has_expired:
        return _close_question(packet, expire_question(packet), "the question expired")
    if classified.kind == "neither":
        return _ask_again(packet, {}, question, classified.problem)
    try:
        decision = await effects_of_reply(classified.reply, question, packet, catalogue)
    except RequestError as error:
        return _ask_again(packet, {}, question, str(error))
    if decision.changed_tools:
        return _ask_again(
            packet,
            update_for_new_review(packet, catalogue),
            question,
            f"{', '.join(decision.changed_tools)}: {CALL_CHANGED}",
        )
    if not await claim(decision, question, packet, journal):
        # This answer came after another answer was accepted. In a fork or a replay, the first interrupt returns the
        # accepted answer again. This interrupt returns the new answer, which does not belong to the new question.
        if not typed:
            interrupt(interrupt_payload(packet, question, ALREADY_ANSWERED))
        return _ask_again(packet, {}, question, ALREADY_ANSWERED)
    update = _close_question(
        packet, decision.update, "the user answered" if packet.routing.question else "the user decided"
    )
    return {**update, "parked_turns": parked_turns(packet)} if _has_correction(packet, update) else update


def _has_correction(packet: CognitionPacket, update: PacketUpdate) -> bool:
    """Return whether the user wrote something else. The calls then stay parked unless selection replaces them."""
    routing, governance = update.get("tool_routing") or packet.routing, update.get("governance") or packet.governance
    outcomes = {approval.outcome for approval in governance.approvals[len(packet.governance.approvals) :]}
    return routing.outcome == "pending" and outcomes == {ApprovalOutcome.ANSWERED}


def _new_request(packet: CognitionPacket, words: str, *, is_message: bool) -> PacketUpdate:
    update: PacketUpdate = {"status": Status(state=PacketState.AWAITING_USER, next_steps=("open_packet",))}
    if is_message:
        return update
    header = packet.header
    request = TurnRequest(origin=header.origin, person=header.person, switch_hints=header.switch_hints)
    return {**update, "messages": [HumanMessage(words)], "request": request}


def _ask_again(packet: CognitionPacket, update: PacketUpdate, question: OpenQuestion, problem: str) -> PacketUpdate:
    return {
        **update,
        "request": TurnRequest(),
        "governance": packet.governance.changed(question=question.repeat(problem)),
        "status": Status(state=PacketState.AWAITING_USER, next_steps=(_STAGE,)),
        "reasoning": packet.reasoning.with_reflections(Reflection(step=_STAGE, summary=f"asks again: {problem}")),
    }


def _close_question(packet: CognitionPacket, update: PacketUpdate, event: str) -> PacketUpdate:
    routing = update.get("tool_routing") or packet.routing
    outcome = ", ".join(f"{call.tool_name}: {call.status.replace('_', ' ')}" for call in routing.calls)
    if not outcome:
        skipped = routing.pass_status is ToolExecutionStatus.SKIPPED
        outcome = routing.note if skipped else packet.routing.question or ""
    return {
        **update,
        "request": TurnRequest(),
        "governance": (update.get("governance") or packet.governance).changed(question=None),
        "status": Status(state=PacketState.PROCESSING),
        "reasoning": packet.reasoning.with_reflections(Reflection(step=_STAGE, summary=f"{event}: {outcome}")),
    }
