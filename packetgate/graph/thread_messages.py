"""Build the messages that show a question in its thread, in the form of LangChain's human-in-the-loop middleware.

An AI message has the waiting tool calls, and tool messages close it. Front ends show an approval card only on such a
message, and providers accept a thread only if every tool call has its tool message. Tool output is copied into them
only for a parent graph, whose nodes read it.
"""

from typing import TypeGuard

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolCall, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from packetgate.gate.questions import CLARIFY
from packetgate.state.packet import RESULT_LABELS, CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall as PacketCall
from packetgate.state.sections import ApprovalOutcome, OpenQuestion
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.spec.tool_spec import canonical_json

_PREFIX = "question-"
_ID_DIGITS = 16
"""Number of digits of a question's or call's id in a message id, because providers accept at most 40 characters."""
_UNANSWERED = "The question was not answered, and the call did not run."
_WAITS = "The call waits for the user's decision."
_TEXTS = {
    ToolExecutionStatus.PENDING: "The call is reviewed again.",
    ToolExecutionStatus.AWAITING_APPROVAL: _WAITS,
    ToolExecutionStatus.AWAITING_CONFIDENCE: _WAITS,
    ToolExecutionStatus.APPROVED: "The user approved the call.",
    ToolExecutionStatus.EXECUTED: "The user approved the call, and it ran.",
    ToolExecutionStatus.FAILED: "The call failed; the answer says why.",
    ToolExecutionStatus.SKIPPED: "The call did not run.",
    ToolExecutionStatus.USER_DENIED: "The user denied the call; it did not run.",
    ToolExecutionStatus.UNKNOWN: "The call was started, and it is not known whether it finished.",
}
_ERRORS = frozenset({ToolExecutionStatus.FAILED, ToolExecutionStatus.USER_DENIED, ToolExecutionStatus.UNKNOWN})


def with_thread_messages(before: CognitionPacket, update: PacketUpdate) -> PacketUpdate:
    """Return a stage's update with the resulting changes of the thread's messages."""
    question = before.governance.question or update.get("governance", before.governance).question
    if question is None and not any(map(_is_question, before.messages)):
        return update
    after = before.with_update(update)
    messages = _messages(before, after)
    if messages == after.messages:
        return update
    ids = [message.id for message in before.messages]
    if [message.id for message in messages[: len(ids)]] == ids:
        return {**update, "messages": [message for message in messages if message not in before.messages]}
    # LangGraph can only append, so an insertion replaces all messages.
    return {**update, "messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *messages]}


def with_results(packet: CognitionPacket, update: PacketUpdate) -> PacketUpdate:
    """Return the update of a turn's last stage with each call and its result before the answer, for a parent graph.

    The names are those that model providers accept.
    """
    calls = packet.tool_routing.all_calls if packet.tool_routing else ()
    ended = {call.call_id[:_ID_DIGITS]: call for call in calls if call.result}
    *earlier, answer = update["messages"]
    changed: dict[str | None, AnyMessage] = {}
    for message in {one.id: one for one in (*packet.messages, *earlier)}.values():
        if isinstance(message, RemoveMessage) or not _is_question(message):
            continue
        ends = [ended.pop((call["id"] or "").partition("-")[2], None) for call in message.tool_calls]
        made = [_made_call(call, end) for call, end in zip(message.tool_calls, ends, strict=True)]
        changed[message.id] = message.model_copy(update={"tool_calls": made})
        for call, end in zip(made, ends, strict=True):
            if end is not None:
                closing = _result_message(call, end)
                changed[closing.id] = closing
    unasked: list[AnyMessage] = []
    if ended:
        made = [_made_call(ToolCall(name="", args={}, id=id_), end) for id_, end in ended.items()]
        results = map(_result_message, made, ended.values())
        unasked = [AIMessage("", id=f"calls-{packet.header.packet_id}", tool_calls=made), *results]
    kept = [changed.pop(message.id, message) for message in earlier]
    return {**update, "messages": [*kept, *changed.values(), *unasked, answer]}


def _made_call(call: ToolCall, ended: PacketCall | None) -> ToolCall:
    """Return a message's call as it ran, with a name that model providers accept."""
    name, args = (ended.tool_name, ended.params) if ended else (call["name"], call["args"])
    return ToolCall(name=name.partition(".")[2].replace(".", "_") or name, args=args, id=call["id"])


def _result_message(call: ToolCall, ended: PacketCall) -> ToolMessage:
    message = _tool_message(call, ended.result_text, is_error=ended.status in _ERRORS)
    labels = {RESULT_LABELS: [one.label.value for one in ended.labels]}
    return message.model_copy(update={"artifact": ended.result and ended.result.artifact, "additional_kwargs": labels})


def _messages(before: CognitionPacket, after: CognitionPacket) -> list[AnyMessage]:
    """Return the thread's messages with earlier questions closed and the open question at the end."""
    question = after.governance.question
    asked = [message for message in after.messages if _is_question(message)]
    question_calls = {call["id"] for message in asked for call in message.tool_calls}
    closings = {message.id: message for message in after.messages if isinstance(message, ToolMessage)}
    others = [
        message
        for message in after.messages
        if not isinstance(message, ToolMessage) or message.tool_call_id not in question_calls
    ]
    is_shown = question is None or any(message.id == _PREFIX + question.question_id for message in asked)
    messages: list[AnyMessage] = []
    for message in others:
        messages.append(message)
        if not _is_question(message) or (question and is_shown and message is others[-1]):
            continue
        for call in message.tool_calls:
            closing = closings.get(f"{_PREFIX}{call['id']}")
            if closing is None or (is_shown and message is asked[-1]):
                closing = (
                    _closing_message(call, before, after)
                    or closing
                    or _tool_message(call, _WAITS if question else _UNANSWERED)
                )
            messages.append(closing)
    return messages if question is None or is_shown else [*messages, _question_message(after, question)]


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


def _closing_message(call: ToolCall, before: CognitionPacket, after: CognitionPacket) -> ToolMessage | None:
    """Return the message that closes a tool call after a stage; None if the packet does not know the call."""
    call_id = (call["id"] or "").partition("-")[2]
    if not call_id:
        is_same_turn = before.header.packet_id == after.header.packet_id
        answers = after.content.clarifications[len(before.content.clarifications) :] if is_same_turn else ()
        return _tool_message(call, answers[-1]) if answers else None
    calls = after.tool_routing.all_calls if after.tool_routing else ()
    packet_call = next((other for other in reversed(calls) if other.call_id.startswith(call_id)), None)
    if packet_call is None:
        return None
    approvals = [approval for approval in after.governance.approvals if approval.call_id == packet_call.call_id]
    is_edited = any(approval.outcome is ApprovalOutcome.EDITED for approval in approvals)
    parts = (
        [f"The user changed the call to {packet_call.tool_name} {canonical_json(packet_call.params)}."]
        if is_edited
        else []
    )
    parts += [
        _TEXTS[packet_call.status],
        *(f"The user said: {approval.comment}" for approval in approvals if approval.comment),
    ]
    return _tool_message(call, " ".join(parts), is_error=packet_call.status in _ERRORS)


def _tool_message(call: ToolCall, text: str, *, is_error: bool = False) -> ToolMessage:
    return ToolMessage(
        text,
        id=f"{_PREFIX}{call['id']}",
        name=call["name"],
        tool_call_id=call["id"] or "",
        status="error" if is_error else "success",
        additional_kwargs={RESULT_LABELS: []},
    )
