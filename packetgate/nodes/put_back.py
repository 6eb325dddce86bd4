"""Repeat the question of a parked turn. This node decides nothing, so it is not a stage."""

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.tools.approval.questions import unpark_last
from packetgate.tools.approval.thread_messages import with_thread_messages


def put_back(state: CognitionPacket) -> PacketUpdate:
    """Return the sections of the last parked packet."""
    return with_thread_messages(state, unpark_last(state))
