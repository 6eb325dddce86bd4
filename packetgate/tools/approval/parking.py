"""Keeping a question open over another turn: its packet is put aside, and put back after that turn's answer."""

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.sections import PacketState, Parked, Status

STILL_WAITS = "This still waits, and has not run."


def parked(packet: CognitionPacket) -> tuple[Parked, ...]:
    """Return what is put aside when a new turn begins: what was before, and this packet where its question is open."""
    question = packet.governance.question
    if question is None or question.has_lapsed:
        return packet.parked
    sections = {name: getattr(packet, name) for name in Parked.model_fields}
    return (*packet.parked, Parked(**sections))


def replaced(packet: CognitionPacket) -> PacketUpdate:
    """Return what it changes that a call is chosen in the place of those of this turn that were put aside."""
    return {"parked": packet.parked[:-1]} if _waits_itself(packet) else {}


def put_back(packet: CognitionPacket) -> PacketUpdate:
    """Return the sections of the packet that was put aside last, its question put anew; the session's stay."""
    last = packet.parked[-1]
    governance = last.governance
    if governance.question is not None:
        governance = governance.asking(governance.question.again(STILL_WAITS))
    return {
        "header": last.header,
        "intent": last.intent,
        "context": last.context.of_session(packet.context),
        "content": last.content,
        "reasoning": packet.reasoning if _waits_itself(packet) else last.reasoning,
        "response": last.response,
        "governance": governance,
        "metrics": packet.metrics if _waits_itself(packet) else last.metrics,
        "tool_routing": last.tool_routing,
        "status": Status(state=PacketState.AWAITING_USER, next_steps=("ask_user",)),
        "parked": packet.parked[:-1],
    }


def _waits_itself(packet: CognitionPacket) -> bool:
    """Whether what was put aside last is of this turn."""
    return bool(packet.parked) and packet.parked[-1].header.packet_id == packet.header.packet_id
