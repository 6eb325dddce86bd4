"""Open a new packet for a new turn, on the session of the last one."""

from langgraph.runtime import Runtime

from packetgate.state.base import new_id
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.packet import OpeningPacket, PacketUpdate, request_in
from packetgate.state.request import TurnRequest
from packetgate.state.sections import (
    DROPPED,
    Attachment,
    AuditEntry,
    Content,
    Context,
    Governance,
    Header,
    Intent,
    Metrics,
    PacketState,
    Question,
    Reasoning,
    Reflection,
    Response,
    Status,
    check_version,
)
from packetgate.tools.approval.parking import parked
from packetgate.tools.execution.call_log import interrupted_writes
from packetgate.tools.execution.journal import Journal
from packetgate.tools.palette.subject import context_shift

STAGE = "open_packet"
LINEAGE = 20
PICTURED_TURNS, PICTURES = 3, 4
"""So many turns later what was attached is still shown, as far as there are not more pictures."""


async def open_packet(
    packet: OpeningPacket, runtime: Runtime[RoutingContext], *, journal: Journal | None = None
) -> PacketUpdate:
    """Reset what belongs to a turn, keep what belongs to the session.

    Raises:
        RequestError: there is no user message, or it is not a request.
        PacketVersionError: the session was written by a newer Packetgate.
    """
    check_version(packet.header.version)
    prompt = request_in(packet.messages)
    question, request = packet.governance.question, packet.request
    if question is not None and _may_reply(packet):
        return _answering(packet, question, prompt)
    waits = ", while a question waits" if len(parked(packet)) > len(packet.parked) else ""
    context = routing_context(runtime.context)
    followed = (packet.header.packet_id,) if packet.content.original_prompt else ()
    thread = runtime.execution_info.thread_id if runtime.execution_info else None
    header = Header(
        session_id=thread or packet.header.session_id or new_id(),
        parent_packet_id=followed[0] if followed else None,
        lineage=(packet.header.lineage + followed)[-LINEAGE:],
        origin=request.origin,
        person=request.person,
        way_out=request.way_out,
    )
    return {
        "header": header,
        "intent": Intent(),
        "context": Context(
            context_type=request.context_type or packet.context.context_type,
            subject=packet.context.subject,
            shift=_shift(packet) if followed else "",
            recent_tools=packet.context.recent_tools,
            result_ledger=packet.context.result_ledger,
            earlier_pictures=_pictures(packet, header.lineage[-PICTURED_TURNS:]),
        ),
        "content": Content(
            original_prompt=prompt,
            attachments=tuple(one.taken_by(header.packet_id) for one in request.attachments),
        ),
        "reasoning": Reasoning().noted(Reflection(step=STAGE, summary=f"{len(prompt):,} characters{waits}")),
        "response": Response(),
        "governance": Governance(
            dry_run=context.is_dry_run,
            settings=context,
            audit=() if waits else (*_dropped(packet), *await _cut_off(packet, journal)),
        ),
        "metrics": Metrics(),
        "status": Status(state=PacketState.PROCESSING, next_steps=("detect_intent",)),
        "tool_routing": None,
        "parked": parked(packet),
        "request": TurnRequest(),
    }


def _may_reply(packet: OpeningPacket) -> bool:
    """Whether the message may be meant for the question that waits, unless that was looked into already."""
    return not (packet.request.is_new or packet.request.attachments or STAGE in packet.status.next_steps)


def _answering(packet: OpeningPacket, question: Question, words: str) -> PacketUpdate:
    """Leave the packet open: the message goes to what it waits with, which says whether it is a reply."""
    return {
        "governance": packet.governance.asking(question.answered(words)),
        "reasoning": packet.reasoning.noted(Reflection(step=STAGE, summary=f"to the question: {words!r}")),
    }


def _pictures(packet: OpeningPacket, turns: tuple[str, ...]) -> tuple[Attachment, ...]:
    attached = (*packet.context.earlier_pictures, *packet.content.attachments)
    return tuple(one for one in attached if one.is_picture and one.packet_id in turns)[-PICTURES:]


def _shift(packet: OpeningPacket) -> str:
    earlier = packet.context.context_type
    return context_shift(earlier, packet.request.context_type or earlier)


def _dropped(packet: OpeningPacket) -> tuple[AuditEntry, ...]:
    """Record what the user was asked last turn and never answered: those calls will not run."""
    routing = packet.tool_routing
    if packet.governance.question is None or routing is None:
        return ()
    waiting = [
        (f"{call.tool_name} was never answered{f': {call.doubt}' if call.started_at else ''}", call.call_id)
        for call in routing.calls
        if call.status.awaits_user
    ]
    asked = [(f"{routing.question!r} was never answered", None)] if routing.question else []
    return tuple(AuditEntry(event=DROPPED, detail=what, call_id=call_id) for what, call_id in [*waiting, *asked])


async def _cut_off(packet: OpeningPacket, journal: Journal | None) -> tuple[AuditEntry, ...]:
    """Record what the last turn changed, or may have, before it was stopped."""
    found = await interrupted_writes(packet, journal) if journal else []
    return tuple(
        AuditEntry(event=DROPPED, detail=f"{call.tool_name}: {end}", call_id=call.call_id) for call, end in found
    )
