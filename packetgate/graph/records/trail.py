"""What a stage did, for the journal: told from what it changed in the packet, so that the two cannot differ."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from langgraph.runtime import Runtime

from packetgate.graph.telemetry.changes import StageChange
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.sections import Governance
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.execution.journal import Entry, Journal

REVIEWED = "call_reviewed"
Stage = Callable[..., Awaitable[PacketUpdate]]


def journaled(name: str, stage: Stage, journal: Journal) -> Stage:
    """Return a stage of which is written down what it did before anything follows from it."""

    async def run(packet: CognitionPacket, runtime: Runtime[RoutingContext], **given: Any) -> PacketUpdate:
        update = await stage(packet, runtime, **given)
        entries = tuple(trail(name, packet, update))
        if entries:
            await journal.record(*entries)
        return update

    return run


def trail(stage: str, packet: CognitionPacket, update: PacketUpdate) -> Iterator[Entry]:
    """Yield what a stage did: who asked, what was proposed, how it was judged, who approved it, what became of it."""
    change = StageChange(stage, packet, update)
    header = change.header
    entry = partial(Entry, session_id=header.session_id, packet_id=header.packet_id)
    if "header" in update and "content" in update:
        asked = {"channel": header.origin, "person": header.person, "request": update["content"].original_prompt}
        yield entry("turn_opened", detail=asked)
    calls = {call.call_id: call for call in change.calls}
    for call in calls.values():
        if call.status is ToolExecutionStatus.PENDING:
            fields = {"tool_name", "params", "risk", "open_world", "risk_why", "provenance"}
            proposed = call.model_dump(mode="json", include=fields)
            yield entry("call_proposed", call_id=call.call_id, detail=proposed)
    for judged in change.evaluations:
        verdict = judged.model_dump(mode="json", exclude={"name", "subject"}) | {"by": _judge(change)}
        if judged.subject in calls:
            verdict |= {"tool": calls[judged.subject].tool_name, "status": calls[judged.subject].status.value}
        yield entry(REVIEWED, call_id=judged.subject, detail=verdict)
    before = Governance() if "header" in update else packet.governance
    yield from _governed(before, update.get("governance", before), entry)


def _governed(before: Governance, after: Governance, entry: Callable[..., Entry]) -> Iterator[Entry]:
    approved = set()
    for approval in after.approvals[len(before.approvals) :]:
        event = f"call_{approval.outcome}"
        approved.add((event, approval.call_id))
        detail = approval.model_dump(mode="json", exclude={"call_id", "outcome", "at"})
        yield entry(event, call_id=approval.call_id, detail=detail)
    for told in after.audit[len(before.audit) :]:
        if (told.event, told.call_id) not in approved:
            yield entry(told.event, call_id=told.call_id or "", detail={"detail": told.detail})
    question = after.question
    if question is not None and (before.question is None or before.question.question_id != question.question_id):
        detail = question.model_dump(mode="json", exclude={"reply"})
        yield entry("question_asked", detail=detail)


def _judge(change: StageChange) -> str:
    log = change.reasoning[1].reflection_log
    return (log[-1].decided_by if log else None) or ""
