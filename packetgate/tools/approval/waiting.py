"""Whether somebody can be asked, and the question that is put to them."""

from collections.abc import Sequence
from datetime import timedelta

from langgraph.runtime import ExecutionInfo

from packetgate.state.base import now
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.routing import ToolCall
from packetgate.state.sections import AskedCall, PacketState, Question, Status
from packetgate.tools.approval.preview import previews
from packetgate.tools.approval.remembering import offers
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.execution.journal import Journal
from packetgate.tools.execution.permission import call_digest


def nobody_to_ask(execution: ExecutionInfo | None) -> bool:
    """Whether a question would be lost: without a checkpointer a run has no thread to come back to."""
    return execution is None or execution.thread_id is None


def asking(packet: CognitionPacket, *calls: AskedCall, asks: bool = True) -> PacketUpdate:
    """Return the sections that say that the turn now waits for the user, or that it does not."""
    governance = packet.governance
    expires = now() + timedelta(seconds=governance.settings.ask_timeout_s)
    problem = governance.question.problem if governance.question else ""
    return {
        "governance": governance.asking(Question(expires_at=expires, calls=calls, problem=problem) if asks else None),
        "status": Status(
            state=PacketState.AWAITING_USER if asks else PacketState.PROCESSING,
            next_steps=("ask_user",) if asks else (),
        ),
    }


async def asking_about(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, toolbox: Toolbox, journal: Journal
) -> PacketUpdate:
    """Return the sections that say that the turn waits for the user's word on those of `calls` that need it.

    What these would change is read now, once: the question is the same whenever and wherever it is looked at.
    """
    waiting = [call for call in calls if call.status.awaits_user]
    if not waiting:
        return {"context": packet.context, **asking(packet, asks=False)}
    packet, shown = await previews(waiting, packet, catalogue, toolbox, journal)
    asked = [
        AskedCall(
            call_id=call.call_id,
            digest=call_digest(call, catalogue[call.tool_name]),
            preview=preview,
            remember=offers(call, packet, catalogue),
        )
        for call, preview in zip(waiting, shown, strict=True)
        if call.tool_name in catalogue
    ]
    return {"context": packet.context, **asking(packet, *asked, asks=bool(waiting))}
