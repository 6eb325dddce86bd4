"""Whether somebody can be asked, and the question that is put to them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from langgraph.runtime import ExecutionInfo

from packetgate.state.base import now
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.printing import escaped
from packetgate.state.routing import ToolCall
from packetgate.state.sections import AskedCall, PacketState, Question, Status
from packetgate.tools.approval.remembering import offers
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.execution.permission import call_digest
from packetgate.tools.provenance.roles import sensitive_part


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


def asking_about(
    calls: Sequence[ToolCall], packet: CognitionPacket, catalogue: Catalogue, dry_runs: Mapping[str, ToolCall]
) -> PacketUpdate:
    """Return the sections of a turn that waits for a decision on those of `calls` that need one.

    The outputs of `dry_runs` (by call id) become previews.
    """
    waiting = [call for call in calls if call.status.awaits_user]
    asked = [
        AskedCall(
            call_id=call.call_id,
            digest=call_digest(call, catalogue[call.tool_name]),
            preview=_preview(call, dry_runs.get(call.call_id)),
            remember=offers(call, packet, catalogue),
        )
        for call in waiting
        if call.tool_name in catalogue
    ]
    return asking(packet, *asked, asks=bool(waiting))


def _preview(call: ToolCall, dry_run: ToolCall | None) -> str:
    result = dry_run.result if dry_run else None
    if result is None or not result.dry_run or result.truncated or sensitive_part(call.params):
        return ""
    return escaped(result.output)
