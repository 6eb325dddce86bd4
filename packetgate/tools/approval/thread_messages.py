"""The messages that show a question in its thread, in the form of LangChain's human-in-the-loop middleware.

An AI message has the waiting tool calls, and tool messages close it. Front ends show an approval card only on such a
message, and providers accept a thread only if every tool call has its tool message. No tool output is copied into them.
"""

from typing import TypeGuard

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolCall, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.sections import ApprovalOutcome, OpenQuestion
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.questions import CLARIFY
from packetgate.tools.checks.validation import canonical_json

_PREFIX = "question-"
_ID_DIGITS = 16
"""Number of id digits in the id of a question or a call: providers accept at most 40 characters."""
_UNANSWERED = "It was not answered, and has not run."
_WAITS = "It waits for the user's decision."
_TEXTS = {
    ToolExecutionStatus.PENDING: "It is reviewed again.",
    ToolExecutionStatus.AWAITING_APPROVAL: _WAITS,
    ToolExecutionStatus.AWAITING_CONFIDENCE: _WAITS,
    ToolExecutionStatus.APPROVED: "The user approved it.",
    ToolExecutionStatus.EXECUTED: "The user approved it, and it ran.",
    ToolExecutionStatus.FAILED: "It failed; the answer says why.",
    ToolExecutionStatus.SKIPPED: "It did not run.",
    ToolExecutionStatus.USER_DENIED: "The user denied it; it did not run.",
    ToolExecutionStatus.UNKNOWN: "It was started, and it is not known whether it finished.",
}
_ERRORS = frozenset({ToolExecutionStatus.FAILED, ToolExecutionStatus.USER_DENIED, ToolExecutionStatus.UNKNOWN})


def with_thread_messages(before: CognitionPacket, update: PacketUpdate) -> PacketUpdate:
    """Return a stage's update with the resulting changes of the thread's messages."""
    question = before.governance.question or update.get("governance", before.governance).question
    if question is None and not any(map(_is_question, before.messages)):
        return update
    after = before.with_update(update)
    wanted = _messages(before, after)
    if wanted == after.messages:
        return update
    ids = [message.id for message in before.messages]
    if [message.id for message in wanted[: len(ids)]] == ids:
        return {**update, "messages": [message for message in wanted if message not in before.messages]}
    # LangGraph can only append, so an insertion replaces all messages.
    return {**update, "messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *wanted]}


def _messages(before: CognitionPacket, after: CognitionPacket) -> list[AnyMessage]:
    """Return the thread's messages with earlier questions closed and the open question at the end."""
    question = after.governance.question
    asked = [message for message in after.messages if _is_question(message)]
    question_calls = {call["id"] for message in asked for call in message.tool_calls}
    closings = {one.id: one for one in after.messages if isinstance(one, ToolMessage)}
    others = [
        one for one in after.messages if not isinstance(one, ToolMessage) or one.tool_call_id not in question_calls
    ]
    is_shown = question is None or any(message.id == _PREFIX + question.question_id for message in asked)
    wanted: list[AnyMessage] = []
    for message in others:
        wanted.append(message)
        if not _is_question(message) or (question and is_shown and message is others[-1]):
            continue
        for call in message.tool_calls:
            closing = closings.get(f"{_PREFIX}{call['id']}")
            if closing is None or (is_shown and message is asked[-1]):
                closing = _closing(call, before, after) or closing or _closed(call, _WAITS if question else _UNANSWERED)
            wanted.append(closing)
    return wanted if question is None or is_shown else [*wanted, _question_message(after, question)]


def _is_question(message: AnyMessage) -> TypeGuard[AIMessage]:
    return isinstance(message, AIMessage) and bool(message.tool_calls) and (message.id or "").startswith(_PREFIX)


def _question_message(packet: CognitionPacket, question: OpenQuestion) -> AIMessage:
    text = packet.routing.question if packet.routing.outcome == "clarify" else None
    if text is not None:
        calls = [ToolCall(name=CLARIFY, args={"question": text}, id=_id(question))]
    else:
        waiting = [call for call in packet.routing.calls if call.status.awaits_user]
        calls = [ToolCall(name=call.tool_name, args=call.params, id=_id(question, call.call_id)) for call in waiting]
    content = "\n\n".join(filter(None, (question.problem, text)))
    return AIMessage(content, id=_PREFIX + question.question_id, tool_calls=calls)


def _id(question: OpenQuestion, call_id: str = "") -> str:
    return "-".join(part[:_ID_DIGITS] for part in (question.question_id, call_id) if part)


def _closing(call: ToolCall, before: CognitionPacket, after: CognitionPacket) -> ToolMessage | None:
    """Return the message that closes a tool call after a stage; None if the packet does not know the call."""
    call_id = (call["id"] or "").partition("-")[2]
    if not call_id:
        is_same_turn = before.header.packet_id == after.header.packet_id
        answers = after.content.clarifications[len(before.content.clarifications) :] if is_same_turn else ()
        return _closed(call, answers[-1]) if answers else None
    calls = after.tool_routing.all_calls if after.tool_routing else ()
    found = next((one for one in reversed(calls) if one.call_id.startswith(call_id)), None)
    if found is None:
        return None
    approvals = [one for one in after.governance.approvals if one.call_id == found.call_id]
    is_edited = any(one.outcome is ApprovalOutcome.EDITED for one in approvals)
    parts = [f"The user changed it to {found.tool_name} {canonical_json(found.params)}."] if is_edited else []
    parts += [_TEXTS[found.status], *(f"The user said: {one.comment}" for one in approvals if one.comment)]
    return _closed(call, " ".join(parts), is_error=found.status in _ERRORS)


def _closed(call: ToolCall, text: str, *, is_error: bool = False) -> ToolMessage:
    return ToolMessage(
        text,
        id=f"{_PREFIX}{call['id']}",
        name=call["name"],
        tool_call_id=call["id"] or "",
        status="error" if is_error else "success",
    )
