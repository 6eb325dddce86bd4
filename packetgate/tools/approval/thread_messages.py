"""The messages by which a question is part of its thread.

They have the form of LangChain's human-in-the-loop middleware: an AI message carries the tool calls that wait, and tool
messages close it. Chat front ends show an approval card only on such a message, and providers accept a thread only if
every tool call is followed by its tool message. No tool output is copied into them.
"""

from typing import TypeGuard

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolCall, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.sections import ApprovalOutcome, Question
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.questions import CLARIFY
from packetgate.tools.checks.validation import canonical_json

_PREFIX = "question-"
_ID_DIGITS = 16
"""Of a question's and a call's id each: providers take at most 40 characters."""
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
    ToolExecutionStatus.UNKNOWN: "It was started, and whether it finished is not known.",
}
_ERRORS = frozenset({ToolExecutionStatus.FAILED, ToolExecutionStatus.USER_DENIED, ToolExecutionStatus.UNKNOWN})


def with_thread_messages(before: CognitionPacket, update: PacketUpdate) -> PacketUpdate:
    """Return a stage's update together with the changes of the thread's messages that follow from it."""
    question = before.governance.question or update.get("governance", before.governance).question
    if question is None and not any(map(_is_question, before.messages)):
        return update
    after = before.merged(update)
    wanted = _messages(before, after)
    if wanted == after.messages:
        return update
    ids = [message.id for message in before.messages]
    if [message.id for message in wanted[: len(ids)]] == ids:
        return {**update, "messages": [message for message in wanted if message not in before.messages]}
    # A message is inserted between two others only by writing all of them anew.
    return {**update, "messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *wanted]}


def _messages(before: CognitionPacket, after: CognitionPacket) -> list[AnyMessage]:
    """Return the thread's messages with every earlier question closed, and the question that waits at the end."""
    question = after.governance.question
    asked = [message for message in after.messages if _is_question(message)]
    owned = {call["id"] for message in asked for call in message.tool_calls}
    others = [one for one in after.messages if not isinstance(one, ToolMessage) or one.tool_call_id not in owned]
    closings = {one.id: one for one in after.messages if isinstance(one, ToolMessage)}
    is_put = question is None or any(message.id == _PREFIX + question.question_id for message in asked)
    wanted: list[AnyMessage] = []
    for message in others:
        wanted.append(message)
        if not _is_question(message) or (question and is_put and message is others[-1]):
            continue
        for call in message.tool_calls:
            closing = closings.get(f"{_PREFIX}{call['id']}")
            if closing is None or (is_put and message is asked[-1]):
                closing = _closing(call, before, after) or closing or _closed(call, _WAITS if question else _UNANSWERED)
            wanted.append(closing)
    return wanted if question is None or is_put else [*wanted, _asking(after, question)]


def _is_question(message: AnyMessage) -> TypeGuard[AIMessage]:
    return isinstance(message, AIMessage) and bool(message.tool_calls) and (message.id or "").startswith(_PREFIX)


def _asking(packet: CognitionPacket, question: Question) -> AIMessage:
    """Return the message that puts a question; its text is for front ends that show neither cards nor calls."""
    words = packet.routing.question if packet.routing.outcome == "clarify" else None
    if words is not None:
        calls = [ToolCall(name=CLARIFY, args={"question": words}, id=_id(question))]
    else:
        waiting = [call for call in packet.routing.calls if call.status.awaits_user]
        calls = [ToolCall(name=one.tool_name, args=one.params, id=_id(question, one.call_id)) for one in waiting]
    text = "\n\n".join(filter(None, (question.problem, words)))
    return AIMessage(text, id=_PREFIX + question.question_id, tool_calls=calls)


def _id(question: Question, call_id: str = "") -> str:
    """Return the id of a tool call: of a question's own, since a call may be asked about twice."""
    return "-".join(one[:_ID_DIGITS] for one in (question.question_id, call_id) if one)


def _closing(call: ToolCall, before: CognitionPacket, after: CognitionPacket) -> ToolMessage | None:
    """Return the message that closes a tool call as it stands after a stage; None where the packet does not say."""
    call_id = (call["id"] or "").partition("-")[2]
    if not call_id:
        is_same_turn = before.header.packet_id == after.header.packet_id
        said = after.content.clarifications[len(before.content.clarifications) :] if is_same_turn else ()
        return _closed(call, said[-1]) if said else None
    calls = after.tool_routing.all_calls if after.tool_routing else ()
    found = next((one for one in reversed(calls) if one.call_id.startswith(call_id)), None)
    if found is None:
        return None
    given = [one for one in after.governance.approvals if one.call_id == found.call_id]
    edited = any(one.outcome is ApprovalOutcome.EDITED for one in given)
    parts = [
        f"The user changed it to {found.tool_name} {canonical_json(found.params)}." if edited else "",
        _TEXTS[found.status],
        *(f"The user said: {one.comment}" for one in given if one.comment),
    ]
    return _closed(call, " ".join(filter(None, parts)), is_error=found.status in _ERRORS)


def _closed(call: ToolCall, text: str, *, is_error: bool = False) -> ToolMessage:
    return ToolMessage(
        text,
        id=f"{_PREFIX}{call['id']}",
        name=call["name"],
        tool_call_id=call["id"] or "",
        status="error" if is_error else "success",
    )
