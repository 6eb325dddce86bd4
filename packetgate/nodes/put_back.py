"""Put a question again that waited while another turn ran. It decides nothing, so it is no stage of its own."""

from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.tools.approval.parking import put_back as unparked
from packetgate.tools.approval.thread_messages import with_thread_messages


def put_back(state: CognitionPacket) -> PacketUpdate:
    """Take up the packet that waits where it was left."""
    return with_thread_messages(state, unparked(state))
