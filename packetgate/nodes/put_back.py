"""Repeat the question of a parked turn. This node decides nothing, so it is not a stage."""

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.sections import PacketState, Status, recent_calls

STILL_WAITS = "Waiting for your decision; not run."


def put_back(packet: CognitionPacket) -> PacketUpdate:
    """Return the sections of the last parked turn, with its question again and the session's newer data."""
    last = packet.parked_turns[-1]
    question, newest = last.governance.question, packet if packet.is_parked else last
    return {
        "header": last.header,
        "intent": last.intent,
        "context": last.context.changed(
            **packet.context.of_session, earlier_calls=recent_calls(packet.calls_with_results)
        ),
        "content": last.content,
        "reasoning": newest.reasoning,
        "response": last.response,
        "governance": last.governance.changed(question=question and question.repeat(STILL_WAITS)),
        "metrics": newest.metrics,
        "tool_routing": last.tool_routing,
        "status": Status(state=PacketState.AWAITING_USER, next_steps=("ask_user",)),
        "parked_turns": packet.parked_turns[:-1],
    }
