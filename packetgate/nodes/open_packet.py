"""Open a packet for a new turn of the session."""

from langgraph.runtime import Runtime

from packetgate.deciders.commands import is_command
from packetgate.gate.journal import Journal, entry_for, interrupted_writes, turn_opened
from packetgate.ranking.subject import context_shift
from packetgate.state.base import new_id
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.packet import OpeningPacket, PacketUpdate, request_in
from packetgate.state.parking import parked_turns
from packetgate.state.redaction import redacted
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
    Reasoning,
    Reflection,
    Response,
    Status,
    check_version,
    recent_calls,
)

_STAGE = "open_packet"
LINEAGE = 20
PICTURE_TURNS, MAX_PICTURES = 3, 4
"""Number of turns in which a model receives an attached picture, and maximum number of such pictures."""


async def open_packet(
    packet: OpeningPacket, runtime: Runtime[RoutingContext], *, journal: Journal | None = None
) -> PacketUpdate:
    """Reset the sections of the turn and keep the data of the session.

    Raises:
        RequestError: there is no user message, or the message is not a valid request.
        PacketVersionError: another version of Packetgate wrote the session.
    """
    check_version(packet.header.version)
    prompt = request_in(packet.messages)
    question, request = packet.governance.question, packet.request
    if question is not None and _may_reply(packet) and not is_command(prompt):
        return {
            "governance": packet.governance.changed(question=question.changed(reply=prompt)),
            "reasoning": packet.reasoning.with_reflections(
                Reflection(step=_STAGE, summary=f"possible reply: {prompt!r}")
            ),
        }
    open_note = ", while a question is open" if len(parked_turns(packet)) > len(packet.parked_turns) else ""
    settings = routing_context(runtime.context)
    previous = (packet.header.packet_id,) if packet.content.original_prompt else ()
    thread = runtime.execution_info.thread_id if runtime.execution_info else None
    earlier = packet.context
    header = Header(
        session_id=thread or packet.header.session_id or new_id(),
        parent_packet_id=previous[0] if previous else None,
        lineage=(packet.header.lineage + previous)[-LINEAGE:],
        origin=request.origin,
        person=request.person,
        switch_hints=request.switch_hints,
    )
    context_type = request.context_type or earlier.context_type
    audit = () if open_note else (*_unanswered_entries(packet), *await _interrupted_entries(packet, journal))
    return {
        "entries": (
            turn_opened(header, prompt),
            *(entry_for(header, one.event, one.call_id or "", {"detail": one.detail}) for one in audit),
        ),
        "header": header,
        "intent": Intent(),
        "context": Context(
            context_type=context_type,
            subject=earlier.subject,
            shift=context_shift(earlier.context_type, context_type) if previous else "",
            recent_tools=earlier.recent_tools,
            result_ledger=earlier.result_ledger,
            earlier_calls=recent_calls(packet.calls_with_results),
            earlier_pictures=_pictures(packet, header.lineage[-PICTURE_TURNS:]),
            labels=packet.labels,
        ),
        "content": Content(
            original_prompt=prompt,
            attachments=tuple(
                attachment.changed(text=redacted(attachment.text), packet_id=header.packet_id)
                for attachment in request.attachments
            ),
        ),
        "reasoning": Reasoning().with_reflections(
            Reflection(step=_STAGE, summary=f"{len(prompt):,} characters{open_note}")
        ),
        "response": Response(),
        "governance": Governance(
            dry_run=settings.is_dry_run,
            settings=settings,
            audit=audit,
        ),
        "metrics": Metrics(),
        "status": Status(state=PacketState.PROCESSING, next_steps=("detect_intent",)),
        "tool_routing": None,
        "parked_turns": parked_turns(packet),
        "request": TurnRequest(),
    }


def _may_reply(packet: OpeningPacket) -> bool:
    """Return whether the message may answer the open question; `ask_user` decides that once."""
    return not (packet.request.is_new or packet.request.attachments or _STAGE in packet.status.next_steps)


def _pictures(packet: OpeningPacket, turns: tuple[str, ...]) -> tuple[Attachment, ...]:
    attached = (*packet.context.earlier_pictures, *packet.content.attachments)
    return tuple(attachment for attachment in attached if attachment.is_picture and attachment.packet_id in turns)[
        -MAX_PICTURES:
    ]


def _unanswered_entries(packet: OpeningPacket) -> tuple[AuditEntry, ...]:
    """Return audit entries for the last turn's open question, whose calls will not run."""
    routing = packet.tool_routing
    if packet.governance.question is None or routing is None:
        return ()
    call_notes = [
        (
            f"the question about {call.tool_name} was not answered"
            + (f": {call.unfinished_run_text}" if call.started_at else ""),
            call.call_id,
        )
        for call in routing.calls
        if call.status.awaits_user
    ]
    question_notes = [(f"the question {routing.question!r} was not answered", None)] if routing.question else []
    return tuple(
        AuditEntry(event=DROPPED, detail=note, call_id=call_id) for note, call_id in [*call_notes, *question_notes]
    )


async def _interrupted_entries(packet: OpeningPacket, journal: Journal | None) -> tuple[AuditEntry, ...]:
    """Return audit entries for changes that the last turn made, or may have made, before it was stopped."""
    calls = packet.tool_routing.calls if packet.tool_routing else ()
    writes = await interrupted_writes(calls, packet.header, journal) if journal else []
    return tuple(
        AuditEntry(event=DROPPED, detail=f"{call.tool_name}: {end}", call_id=call.call_id) for call, end in writes
    )
