"""Ask the user and apply the answer. This node does nothing else, because a resumed node runs again from its start."""

import asyncio
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.types import interrupt

from packetgate.deciders.commands import read_command
from packetgate.deciders.packets import facts_of, proposal_of, update_of
from packetgate.deciders.replies import ReplyReader, TypedReply
from packetgate.gate.answers import (
    ALREADY_ANSWERED,
    EXPIRED,
    NAME_THE_QUESTION,
    check_reply_target,
    for_new_review,
    names_question,
)
from packetgate.gate.gate import Gate
from packetgate.gate.proposal import Proposal
from packetgate.gate.questions import approval_payload, text_payload
from packetgate.gate.replies import parse_answer, reply_text
from packetgate.state.codes import Code
from packetgate.state.context import RoutingContext
from packetgate.state.errors import CallRefusedError, RequestError
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.private_names import runs_in_parent
from packetgate.state.request import TurnRequest
from packetgate.state.sections import ApprovalOutcome, OpenQuestion, PacketState, Status
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.toolbox import Toolbox

_STAGE = "ask_user"
_MAY_HAVE_RUN = {ToolExecutionStatus.APPROVED, ToolExecutionStatus.EXECUTED, ToolExecutionStatus.UNKNOWN}


async def ask_user(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, toolbox: Toolbox, gate: Gate, replies: ReplyReader
) -> PacketUpdate:
    """Interrupt with the open question. An unusable answer repeats the question with the reason."""
    question = packet.governance.question
    if question is None:
        raise ValueError("ask_user runs only with an open question")
    typed = question.reply
    reply = typed or _reply_to(packet, question, runtime.execution_info)
    catalogue = await toolbox.catalogue(called=[call.tool_name for call in packet.routing.calls])
    proposal = proposal_of(packet, facts_of(packet, catalogue, runtime.execution_info))
    try:
        check_reply_target(reply, question, proposal.waiting)
    except RequestError as error:
        return _ask_again(packet, question, str(error))
    words = reply_text(reply, max(len(question.calls), 1))
    command = await read_command(words, toolbox) if words else None
    if command is not None and not command.tool_name:  # its text answers it beside the question
        return _ask_again(packet, question, command.text)
    classified = TypedReply("request" if command else "reply", reply)
    if words and command is None:
        classified = await replies.classify(words, packet, catalogue)
    if classified.kind == "request":
        return _new_request(packet, words, is_message=bool(typed))
    if classified.kind == "neither" and not question.has_expired:
        return _ask_again(packet, question, classified.problem)
    try:
        return await _decided(packet, question, proposal, classified.reply, gate)
    except RequestError as error:
        return _ask_again(packet, question, str(error))
    except CallRefusedError as error:
        if error.code is Code.CALL_CHANGED:
            changed = await asyncio.to_thread(for_new_review, proposal)
            return _ask_again(packet, question, str(error), changed)
        # This answer came after another answer was accepted. In a fork or a replay, the first interrupt returns the
        # accepted answer again. This interrupt returns the new answer, which does not belong to the new question.
        if not typed:
            interrupt(_payload(packet, question, ALREADY_ANSWERED))
        return _ask_again(packet, question, ALREADY_ANSWERED)


def _reply_to(packet: CognitionPacket, question: OpenQuestion, execution: ExecutionInfo | None) -> Any:
    """Interrupt with the question, and return its reply.

    If a parent continues without a new reply, LangGraph gives its node the last reply again. So under a
    parent, a reply to a later question of the turn counts only if it names the question.
    """
    was_asked = packet.content.clarifications or any(one.question_id for one in packet.governance.approvals)
    if not was_asked or not runs_in_parent(execution):
        return interrupt(_payload(packet, question))
    payload = _payload(packet, question, "; ".join(filter(None, [question.problem, NAME_THE_QUESTION])))
    while not names_question(reply := interrupt(payload), question):
        pass
    return reply


def _payload(packet: CognitionPacket, question: OpenQuestion, problem: str = "") -> dict[str, Any]:
    if packet.routing.outcome == "clarify" and packet.routing.question is not None:
        return text_payload(packet.routing.question, question, problem)
    return approval_payload((call for call in packet.routing.calls if call.status.awaits_user), question, problem)


async def _decided(
    packet: CognitionPacket, question: OpenQuestion, proposal: Proposal, reply: Any, gate: Gate
) -> PacketUpdate:
    event = "the question expired" if question.has_expired else "the user answered"
    if packet.routing.outcome == "clarify":
        answer = None if question.has_expired else parse_answer(reply)
        if not question.has_expired and not await gate.journal.claim(question.question_id):
            raise CallRefusedError(ALREADY_ANSWERED, code=Code.ANSWER_TAKEN)
        if answer is None:
            note = EXPIRED if question.has_expired else "you did not answer the question"
            return _close_question(packet, {"tool_routing": packet.routing.ended_without_call(note)}, event)
        update: PacketUpdate = {
            "tool_routing": packet.routing.after_answer(),
            "content": packet.content.with_answers(answer),
        }
        return _close_question(packet, update, event)
    decided = await gate.answer(proposal, reply)
    new = decided.approvals[len(proposal.approvals) :]
    comments = [approval.comment for approval in new if approval.goes_to_selection]
    update = update_of(packet, decided)
    routing = packet.routing.changed(calls=decided.calls)
    if comments and not any(call.status in _MAY_HAVE_RUN for call in decided.calls):
        routing = routing.after_answer()
    update = {**update, "tool_routing": routing, "content": packet.content.with_answers(*dict.fromkeys(comments))}
    update = _close_question(packet, update, event if question.has_expired else "the user decided")
    # if the user wrote something else, the calls stay parked unless selection replaces them
    is_correction = routing.outcome == "pending" and {one.outcome for one in new} == {ApprovalOutcome.ANSWERED}
    return {**update, "parked_turns": packet.parked_for_new_turn} if is_correction else update


def _new_request(packet: CognitionPacket, words: str, *, is_message: bool) -> PacketUpdate:
    update: PacketUpdate = {"status": Status(state=PacketState.AWAITING_USER, next_steps=("open_packet",))}
    if is_message:
        return update
    header = packet.header
    request = TurnRequest(origin=header.origin, person=header.person, switch_hints=header.switch_hints)
    return {**update, "messages": [HumanMessage(words)], "request": request}


def _ask_again(
    packet: CognitionPacket, question: OpenQuestion, problem: str, changed: Proposal | None = None
) -> PacketUpdate:
    """Return the update that repeats the question; the calls of `changed` are reviewed again before."""
    routing: PacketUpdate = {"tool_routing": packet.routing.changed(calls=changed.calls)} if changed else {}
    return {
        **routing,
        "request": TurnRequest(),
        "governance": packet.governance.changed(question=question.repeat(problem)),
        "status": Status(state=PacketState.AWAITING_USER, next_steps=(_STAGE,)),
        "reasoning": packet.reasoning.with_summary(_STAGE, f"asks again: {problem}"),
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
        "reasoning": packet.reasoning.with_summary(_STAGE, f"{event}: {outcome}"),
    }
