"""Turns with an open question, while the user asks for something else."""

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.sections import PacketState, ParkedTurn, Status, recent_calls

STILL_WAITS = "Waiting for your decision; not run."


def parked_turns(packet: CognitionPacket) -> tuple[ParkedTurn, ...]:
    """Return the parked turns for a new turn, with this packet's turn if its question is open."""
    question = packet.governance.question
    if question is None or question.has_expired:
        return packet.parked_turns
    sections = {name: getattr(packet, name) for name in ParkedTurn.model_fields}
    return (*packet.parked_turns, ParkedTurn(**sections))


def drop_replaced_calls(packet: CognitionPacket) -> PacketUpdate:
    """Return the update that drops this turn's parked calls, which a newly selected call replaces."""
    return {"parked_turns": packet.parked_turns[:-1]} if _is_parked_itself(packet) else {}


def unpark_last(packet: CognitionPacket) -> PacketUpdate:
    """Return the sections that continue the last parked turn and ask its question again."""
    last = packet.parked_turns[-1]
    governance = last.governance
    if governance.question is not None:
        governance = governance.changed(question=governance.question.repeat(STILL_WAITS))
    newest = packet if _is_parked_itself(packet) else last
    session = packet.context.changed(earlier_calls=recent_calls(packet.calls_with_results))
    return {
        "header": last.header,
        "intent": last.intent,
        "context": last.context.with_session_fields_of(session),
        "content": last.content,
        "reasoning": newest.reasoning,
        "response": last.response,
        "governance": governance,
        "metrics": newest.metrics,
        "tool_routing": last.tool_routing,
        "status": Status(state=PacketState.AWAITING_USER, next_steps=("ask_user",)),
        "parked_turns": packet.parked_turns[:-1],
    }


def _is_parked_itself(packet: CognitionPacket) -> bool:
    return bool(packet.parked_turns) and packet.parked_turns[-1].header.packet_id == packet.header.packet_id
