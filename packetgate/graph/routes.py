"""Where a packet goes next. Pure: each reads the packet and names the next stage."""

from typing import Literal

from packetgate.state.packet import CognitionPacket
from packetgate.state.transitions import ToolExecutionStatus


def after_opening(packet: CognitionPacket) -> Literal["detect_intent", "ask_user"]:
    """A message that answers the pending question goes there."""
    return "detect_intent" if packet.governance.question is None else "ask_user"


def after_intent(packet: CognitionPacket) -> Literal["build_palette", "respond"]:
    """A tool is needed, and the cap allows one more pass."""
    return "build_palette" if packet.intent.needs_tool and not packet.routing.capped else "respond"


def after_selection(packet: CognitionPacket) -> Literal["review_selection", "build_palette", "ask_user", "respond"]:
    """Calls are reviewed, a miss or a wish to see more changes the palette, a question goes to the user."""
    match packet.routing.outcome:
        case "call":
            return "review_selection"
        case "miss" | "describe":
            return "build_palette"
        case "clarify":
            return "ask_user"
    return "respond"


def after_review(packet: CognitionPacket) -> Literal["execute_tool", "ask_user", "respond"]:
    """One question for all calls that need it; without any, what passed the gate runs."""
    if any(call.status.awaits_user for call in packet.routing.calls):
        return "ask_user"
    return _run_or_respond(packet)


def after_asking(
    packet: CognitionPacket,
) -> Literal["open_packet", "ask_user", "review_selection", "execute_tool", "select_tool", "respond"]:
    """What was approved runs; what the user said instead goes back to selection; what has changed is judged anew.

    A new request opens a packet of its own.
    """
    if "open_packet" in packet.status.next_steps:
        return "open_packet"
    if packet.governance.question is not None:
        waits = packet.routing.outcome == "clarify" or any(call.status.awaits_user for call in packet.routing.calls)
        return "ask_user" if waits else "review_selection"
    return "select_tool" if packet.routing.outcome == "pending" else _run_or_respond(packet)


def after_execution(packet: CognitionPacket) -> Literal["ask_user", "inject_result"]:
    """What may have been run before is asked about."""
    return "ask_user" if any(call.status.awaits_user for call in packet.routing.calls) else "inject_result"


def after_answering(packet: CognitionPacket) -> Literal["put_back", "__end__"]:
    """A question that waited meanwhile is put again."""
    return "put_back" if packet.parked else "__end__"


def _run_or_respond(packet: CognitionPacket) -> Literal["execute_tool", "respond"]:
    """What failed in a dry run, or was run before the user was asked, goes on as what has just ended does."""
    ended = {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED, ToolExecutionStatus.UNKNOWN}
    goes_on = {ToolExecutionStatus.APPROVED, *ended}
    return "execute_tool" if any(call.status in goes_on for call in packet.routing.calls) else "respond"
