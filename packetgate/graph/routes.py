"""Routes: pure functions that read the packet and name the next stage."""

from typing import Literal

from packetgate.state.packet import CognitionPacket
from packetgate.state.transitions import ToolExecutionStatus


def after_opening(packet: CognitionPacket) -> Literal["detect_intent", "ask_user"]:
    """Go to `ask_user` if the message may answer the open question."""
    return "detect_intent" if packet.governance.question is None else "ask_user"


def after_intent(packet: CognitionPacket) -> Literal["build_palette", "respond"]:
    """Build a palette if a tool is needed and the limit of passes allows another pass."""
    return "build_palette" if packet.intent.needs_tool and not packet.routing.is_at_reinjection_limit else "respond"


def after_selection(packet: CognitionPacket) -> Literal["review_selection", "build_palette", "ask_user", "respond"]:
    """Review calls; change the palette after a miss or a request for descriptions; ask the user."""
    match packet.routing.outcome:
        case "call":
            return "review_selection"
        case "miss" | "describe":
            return "build_palette"
        case "clarify":
            return "ask_user"
    return "respond"


def after_review(packet: CognitionPacket) -> Literal["execute_tool", "ask_user", "respond"]:
    """Ask about calls that need an answer; otherwise run approved calls."""
    if any(call.status.awaits_user for call in packet.routing.calls):
        return "ask_user"
    return _run_or_respond(packet)


def after_asking(
    packet: CognitionPacket,
) -> Literal["open_packet", "ask_user", "review_selection", "execute_tool", "select_tool", "respond"]:
    """Run approved calls, select again if the user wrote something else, review changed calls again.

    A new request opens a new packet.
    """
    if "open_packet" in packet.status.next_steps:
        return "open_packet"
    if packet.governance.question is not None:
        waits = packet.routing.outcome == "clarify" or any(call.status.awaits_user for call in packet.routing.calls)
        return "ask_user" if waits else "review_selection"
    return "select_tool" if packet.routing.outcome == "pending" else _run_or_respond(packet)


def after_execution(packet: CognitionPacket) -> Literal["execute_tool", "ask_user", "inject_result"]:
    """Run the calls that waited for a tool's own question; ask about calls that may have run before."""
    if any(call.status is ToolExecutionStatus.APPROVED for call in packet.routing.calls):
        return "execute_tool"
    return "ask_user" if any(call.status.awaits_user for call in packet.routing.calls) else "inject_result"


def after_injection(packet: CognitionPacket) -> Literal["detect_intent", "respond"]:
    """Answer if a result is the answer; otherwise, continue with the results."""
    return "respond" if packet.routing.direct_answer else "detect_intent"


def after_answering(packet: CognitionPacket) -> Literal["put_back", "__end__"]:
    """Go to `put_back` if a question is parked."""
    return "put_back" if packet.parked_turns else "__end__"


def _run_or_respond(packet: CognitionPacket) -> Literal["execute_tool", "respond"]:
    """Return `execute_tool` if a call is approved or has ended without a run in this pass; otherwise `respond`."""
    ended = {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN}
    goes_on = {ToolExecutionStatus.APPROVED, *ended}
    return "execute_tool" if any(call.status in goes_on for call in packet.routing.calls) else "respond"
