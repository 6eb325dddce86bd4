"""Convert between packet and gate: the facts and the proposal of a packet, and the sections that a proposal changes."""

from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage

from packetgate.gate.facts import Facts
from packetgate.gate.journal import CALL_REVIEWED, entry_for
from packetgate.gate.proposal import Proposal
from packetgate.state.channels import PROXY
from packetgate.state.packet import CognitionPacket, PacketUpdate, is_client_supplied
from packetgate.state.sections import AuditEntry, OpenQuestion, PacketState, Status
from packetgate.tools.catalogue.catalogue import Catalogue

if TYPE_CHECKING:
    from langgraph.runtime import ExecutionInfo

_NOT_AUDITED = frozenset({"call_proposed", CALL_REVIEWED, "question_asked"})


def facts_of(packet: CognitionPacket, catalogue: Catalogue, execution: "ExecutionInfo | None" = None) -> Facts:
    """Return the gate's facts about a packet's turn.

    Args:
        execution: the run; without a run, or without a thread to resume, the user cannot be asked.
    """
    content, context = packet.content, packet.context
    others = [(f"the attached {one.name}", one.text) for one in content.attachments]
    for message in reversed(packet.conversation):
        is_supplied = is_client_supplied(message)
        if message.text and (is_supplied or isinstance(message, AIMessage)):
            others.append(
                ("an earlier message of the conversation" if is_supplied else "an earlier answer", message.text)
            )
    return Facts(
        header=packet.header,
        catalogue=catalogue,
        offered=context.palette_names,
        results_only=frozenset(entry.tool_name for entry in context.palette if entry.reason == "kept"),
        settings=packet.governance.settings,
        words=content.user_words,
        request=packet.request_words,
        session_words=packet.session_words,
        earlier=packet.calls_with_results,
        other_texts=tuple(others),
        labels=packet.labels,
        can_ask=execution is not None and execution.thread_id is not None,
        renames_calls=packet.header.origin == PROXY,
    )


def proposal_of(packet: CognitionPacket, facts: Facts) -> Proposal:
    """Return the calls of the packet's pass, with its decisions and its question."""
    governance = packet.governance
    return Proposal(facts, packet.routing.calls, governance.approvals, governance.question)


def update_of(packet: CognitionPacket, proposal: Proposal) -> PacketUpdate:
    """Return the sections that a proposal changes: calls, decisions, question, audit trail, state of the turn."""
    question, asked_before, known = proposal.question, packet.governance.question, packet.governance.approvals
    approvals = (*known, *(approval for approval in proposal.approvals if approval not in known))
    if question is not None and asked_before is not None and not question.problem:
        question = question.changed(problem=asked_before.problem)
    audit = (
        AuditEntry(
            event=entry.event,
            detail=str(
                entry.detail.get("detail") or f"{entry.detail.get('tool_name', '')} {entry.detail.get('comment', '')}"
            ).strip(),
            call_id=entry.call_id,
        )
        for entry in proposal.entries
        if entry.event not in _NOT_AUDITED
    )
    state = PacketState.AWAITING_USER if question else PacketState.PROCESSING
    return {
        "tool_routing": packet.routing.changed(calls=proposal.calls),
        "governance": packet.governance.changed(
            approvals=approvals, question=question, audit=(*packet.governance.audit, *audit)
        ),
        "status": Status(state=state, next_steps=("ask_user",) if question else ()),
        "entries": proposal.entries,
    }


def text_question(packet: CognitionPacket, *, asks: bool) -> PacketUpdate:
    """Return the sections of a turn that waits for a text of the user, or continues without `asks`."""
    governance = packet.governance
    if not asks:
        return {"governance": governance.changed(question=None), "status": Status(state=PacketState.PROCESSING)}
    problem = governance.question.problem if governance.question else ""
    question = OpenQuestion.within(governance.settings.ask_timeout_s, problem=problem)
    detail = question.model_dump(mode="json", exclude={"reply"})
    return {
        "governance": governance.changed(question=question),
        "status": Status(state=PacketState.AWAITING_USER, next_steps=("ask_user",)),
        "entries": (entry_for(packet.header, "question_asked", detail=detail),),
    }
