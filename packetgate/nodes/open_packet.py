"""Open a packet for a new turn of the session."""

from langgraph.runtime import Runtime

from packetgate.deciders.commands import NOT_TYPED, read_command, read_pick
from packetgate.gate.journal import Journal, entry_for, interrupted_writes, turn_opened
from packetgate.state.base import new_id
from packetgate.state.context import RoutingContext, routing_context
from packetgate.state.packet import OpeningPacket, PacketUpdate, request_in
from packetgate.state.private_names import runs_in_parent
from packetgate.state.redaction import redacted
from packetgate.state.request import TurnRequest
from packetgate.state.sections import (
    DROPPED,
    AuditEntry,
    Content,
    Context,
    Governance,
    Header,
    Intent,
    Metrics,
    PacketState,
    Reasoning,
    Response,
    Status,
    TypedCommand,
    check_version,
    recent_calls,
)
from packetgate.tools.catalogue.toolbox import Toolbox

_STAGE = "open_packet"
LINEAGE = 20
PICTURE_TURNS, MAX_PICTURES = 3, 4
"""Number of turns in which a model receives an attached image, and maximum number of such images."""


async def open_packet(
    packet: OpeningPacket, runtime: Runtime[RoutingContext], *, journal: Journal, toolbox: Toolbox
) -> PacketUpdate:
    """Reset the sections of the turn and keep the data of the session.

    Raises:
        RequestError: there is no user message, or the message is not a valid request.
        PacketVersionError: another version of Packetgate wrote the session.
    """
    check_version(packet.header.version)
    execution = runtime.execution_info
    prompt = request_in(packet.messages, of_parent=runs_in_parent(execution))
    question, request = packet.governance.question, packet.request
    settings = routing_context(runtime.context)
    offered = packet.tool_routing.offered_calls if packet.tool_routing and question is None else ()
    command = None
    if settings.enabled:
        command = await read_pick(prompt, offered, toolbox) or await read_command(prompt, toolbox)
    if command is not None and not request.takes_commands:
        command = TypedCommand(text=NOT_TYPED, is_error=True)
    is_new = request.is_new or not request.takes_commands or (command is not None and bool(command.tool_name))
    may_reply = not (is_new or request.attachments or _STAGE in packet.status.next_steps)
    if question is not None and may_reply:  # `ask_user` decides once whether it is a reply
        return {
            "governance": packet.governance.changed(question=question.changed(reply=prompt)),
            "reasoning": packet.reasoning.with_summary(_STAGE, f"possible reply: {prompt!r}"),
        }
    parked = packet.parked_for_new_turn
    open_note = ", while a question is open" if len(parked) > len(packet.parked_turns) else ""
    previous = (packet.header.packet_id,) if packet.content.original_prompt else ()
    thread = execution.thread_id if execution else None
    earlier = packet.context
    header = Header(
        session_id=thread or packet.header.session_id or new_id(),
        parent_packet_id=previous[0] if previous else None,
        lineage=(packet.header.lineage + previous)[-LINEAGE:],
        origin=request.origin,
        person=request.person,
        switch_hints=request.switch_hints,
    )
    turns, attached = header.lineage[-PICTURE_TURNS:], (*earlier.earlier_pictures, *packet.content.attachments)
    pictures = tuple(one for one in attached if one.is_picture and one.packet_id in turns)
    audit = () if open_note else await _dropped_entries(packet, journal)
    return {
        "entries": (
            turn_opened(header, prompt),
            *(entry_for(header, one.event, one.call_id or "", {"detail": one.detail}) for one in audit),
        ),
        "header": header,
        "intent": Intent(),
        "context": Context(**earlier.of_session).changed(
            context_type=request.context_type or earlier.context_type,
            earlier_calls=recent_calls(packet.calls_with_results),
            earlier_pictures=pictures[-MAX_PICTURES:],
            labels=packet.labels,
        ),
        "content": Content(
            original_prompt=prompt,
            typed_command=command,
            attachments=tuple(
                attachment.changed(text=redacted(attachment.text), packet_id=header.packet_id)
                for attachment in request.attachments
            ),
        ),
        "reasoning": Reasoning().with_summary(_STAGE, f"{len(prompt):,} characters{open_note}"),
        "response": Response(),
        "governance": Governance(dry_run=settings.is_dry_run, settings=settings, audit=audit),
        "metrics": Metrics(),
        "status": Status(state=PacketState.PROCESSING, next_steps=("detect_intent",)),
        "tool_routing": None,
        "parked_turns": parked,
        "request": TurnRequest(),
    }


async def _dropped_entries(packet: OpeningPacket, journal: Journal) -> tuple[AuditEntry, ...]:
    """Return audit entries for unfinished work of the last turn.

    These are the calls of its open question, which will not run, and changes that it made, or may have made, before it
    was stopped.
    """
    routing = packet.tool_routing
    if routing is None:
        return ()
    notes: list[tuple[str, str | None]] = []
    if packet.governance.question is not None:
        for call in routing.calls:
            if call.status.awaits_user:
                started = f": {call.unfinished_run_text}" if call.started_at else ""
                notes.append((f"the question about {call.tool_name} was not answered{started}", call.call_id))
        if routing.question:
            notes.append((f"the question {routing.question!r} was not answered", None))
    writes = await interrupted_writes(routing.calls, packet.header, journal)
    notes += [(f"{call.tool_name}: {end}", call.call_id) for call, end in writes]
    return tuple(AuditEntry(event=DROPPED, detail=note, call_id=call_id) for note, call_id in notes)
