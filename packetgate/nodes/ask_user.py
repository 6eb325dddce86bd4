"""Ask the user, and take their word. Nothing else happens here: a resumed node runs again from its start."""

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from packetgate.deciders.reflex.hearing import Heard, hear
from packetgate.state.context import RoutingContext
from packetgate.state.errors import RequestError
from packetgate.state.packet import CognitionPacket, PacketUpdate
from packetgate.state.request import TurnRequest
from packetgate.state.sections import ApprovalOutcome, PacketState, Question, Reflection, Status
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.approval.decisions import CHANGED, TAKEN, check_names, decision_of, expired, reopened, taken
from packetgate.tools.approval.parking import parked
from packetgate.tools.approval.questions import payload, words_of
from packetgate.tools.approval.waiting import asking
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.execution.journal import Journal

STAGE = "ask_user"


async def ask_user(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, toolbox: Toolbox, journal: Journal
) -> PacketUpdate:
    """Interrupt with the pending question; what is neither a reply nor a new request has it put again, saying why."""
    question = packet.governance.question
    if question is None:  # an earlier Packetgate asked
        return {**reopened(packet, await toolbox.catalogue()), **asking(packet)}
    typed = question.reply
    reply = typed or interrupt(payload(packet, question))
    try:
        check_names(reply, question, packet)
    except RequestError as error:
        return _anew(packet, {}, question.again(str(error)))
    catalogue = await toolbox.catalogue()
    words = words_of(reply, max(len(question.calls), 1))
    said = await hear(words, packet, catalogue) if words else Heard("reply", reply)
    if said.kind == "request":
        return _request(packet, words, is_message=bool(typed))
    if question.has_lapsed:
        return _told(packet, expired(packet), "the question lapsed unanswered")
    if said.kind == "neither":
        return _anew(packet, {}, question.again(said.told))
    try:
        decision = await decision_of(said.reply, question, packet, catalogue)
    except RequestError as error:
        return _anew(packet, {}, question.again(str(error)))
    if decision.changed:
        return _anew(packet, reopened(packet, catalogue), question.again(f"{', '.join(decision.changed)}: {CHANGED}"))
    if not await taken(decision, question, packet, journal):
        # Of two who answer at once, the later ends here, and leaves no trace in the thread. In a fork or a replay
        # LangGraph hands the answer back that was taken, and here the new one, which nobody gave to a new question.
        if not typed:
            interrupt(payload(packet, question, TAKEN))
        return _anew(packet, {}, question.again(TAKEN))
    update = _told(packet, decision.update, "the user answered" if packet.routing.question else "the user decided")
    return {**update, "parked": parked(packet)} if _is_corrected(packet, update) else update


def _is_corrected(packet: CognitionPacket, update: PacketUpdate) -> bool:
    """Whether something was said instead of a yes or no: the calls wait on where nothing is chosen in their place."""
    routing, governance = update.get("tool_routing") or packet.routing, update.get("governance") or packet.governance
    outcomes = {one.outcome for one in governance.approvals[len(packet.governance.approvals) :]}
    return routing.outcome == "pending" and outcomes == {ApprovalOutcome.ANSWERED}


def _request(packet: CognitionPacket, words: str, *, is_message: bool) -> PacketUpdate:
    """Return what it changes that the user asks for something else: a turn of its own begins with it."""
    update: PacketUpdate = {"status": Status(state=PacketState.AWAITING_USER, next_steps=("open_packet",))}
    if is_message:
        return update
    header = packet.header
    asked = TurnRequest(origin=header.origin, person=header.person, way_out=header.way_out)
    return {**update, "messages": [HumanMessage(words)], "request": asked}


def _anew(packet: CognitionPacket, update: PacketUpdate, question: Question) -> PacketUpdate:
    return {
        **update,
        "request": TurnRequest(),
        "governance": packet.governance.asking(question),
        "status": Status(state=PacketState.AWAITING_USER, next_steps=(STAGE,)),
        "reasoning": packet.reasoning.noted(Reflection(step=STAGE, summary=f"asks again: {question.problem}")),
    }


def _told(packet: CognitionPacket, update: PacketUpdate, what: str) -> PacketUpdate:
    routing = update.get("tool_routing") or packet.routing
    outcomes = ", ".join(f"{call.tool_name}: {call.status.replace('_', ' ')}" for call in routing.calls)
    skipped = routing.pass_status is ToolExecutionStatus.SKIPPED and not routing.calls
    return {
        **update,
        "request": TurnRequest(),
        "governance": (update.get("governance") or packet.governance).asking(None),
        "status": Status(state=PacketState.PROCESSING),
        "reasoning": packet.reasoning.noted(
            Reflection(
                step=STAGE, summary=f"{what}: {outcomes or (routing.note if skipped else packet.routing.question)}"
            )
        ),
    }
