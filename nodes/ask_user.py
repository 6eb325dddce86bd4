"""Ask the user, and take their word. Nothing else happens here: a resumed node runs again from its start."""

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from state.context import RoutingContext
from state.errors import RequestError
from state.packet import CognitionPacket, PacketUpdate
from state.sections import PacketState, Question, Reflection, Status
from state.transitions import ToolExecutionStatus
from tools.approval.answering import CHANGED, TAKEN, decision_of, taken
from tools.approval.decisions import expired, reopened
from tools.approval.questions import payload
from tools.approval.waiting import asking
from tools.catalogue.toolbox import Toolbox
from tools.execution.journal import Journal

STAGE = "ask_user"


async def ask_user(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, toolbox: Toolbox, journal: Journal
) -> PacketUpdate:
    """Interrupt with the pending question; a reply that cannot be read is asked for again, saying why."""
    question = packet.governance.question
    if question is None:  # an earlier Packetgate asked
        return {**reopened(packet, await toolbox.catalogue()), **asking(packet)}
    typed = question.reply
    reply = typed or interrupt(payload(packet, question))
    if question.has_lapsed:
        return _told(packet, expired(packet), "the question lapsed unanswered")
    catalogue = await toolbox.catalogue()
    try:
        decision = await decision_of(reply, question, packet, catalogue)
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
    return _told(packet, decision.update, "the user answered" if packet.routing.question else "the user decided")


def _anew(packet: CognitionPacket, update: PacketUpdate, question: Question) -> PacketUpdate:
    return {
        **update,
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
        "governance": (update.get("governance") or packet.governance).asking(None),
        "status": Status(state=PacketState.PROCESSING),
        "reasoning": packet.reasoning.noted(
            Reflection(
                step=STAGE, summary=f"{what}: {outcomes or (routing.note if skipped else packet.routing.question)}"
            )
        ),
    }
