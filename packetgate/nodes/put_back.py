"""Repeat the question of a parked turn. This node decides nothing, so it is not a stage."""

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.parking import unpark_last


def put_back(state: CognitionPacket) -> PacketUpdate:
    """Return the sections of the last parked packet."""
    return unpark_last(state)
