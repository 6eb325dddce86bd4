"""Whether somebody can be asked, and until when."""

from datetime import timedelta

from langgraph.runtime import ExecutionInfo

from state.base import now
from state.context import RoutingContext
from state.packet import CognitionPacket, PacketUpdate
from state.sections import PacketState, Status


def nobody_to_ask(execution: ExecutionInfo | None) -> bool:
    """Whether a question would be lost: without a checkpointer a run has no thread to come back to."""
    return execution is None or execution.thread_id is None


def asked(packet: CognitionPacket, context: RoutingContext, *, asks: bool) -> PacketUpdate:
    """Return the sections that say that the turn now waits for the user, or that it does not."""
    expires = now() + timedelta(seconds=context.ask_timeout_s) if asks else None
    return {
        "governance": packet.governance.asking_until(expires),
        "status": Status(
            state=PacketState.AWAITING_USER if asks else PacketState.PROCESSING,
            next_steps=("ask_user",) if asks else (),
        ),
    }


def has_expired(packet: CognitionPacket) -> bool:
    """Whether the pending question has lapsed."""
    expires = packet.governance.ask_expires_at
    return expires is not None and now() > expires
