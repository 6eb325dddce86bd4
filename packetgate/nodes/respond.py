"""Answer the user, without tool markup and without foreign links that a front end would fetch."""

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from packetgate.deciders.fallback import respond_plainly
from packetgate.deciders.protocols import Answer, Responder
from packetgate.models.links import with_inert_links
from packetgate.state.context import RoutingContext
from packetgate.state.packet import MODEL_TEXT, CognitionPacket, PacketUpdate
from packetgate.state.printing import shorten
from packetgate.state.sections import PacketState, Response, Status
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.text.reading import ABOUT_TOOLS, talk_in

_STAGE = "respond"
_MAX_REASON_CHARS = 300
_LIKELIER = "[Chosen by rules: more likely right than the model's choice]"


async def respond(
    packet: CognitionPacket, runtime: Runtime[RoutingContext], *, decider: Responder, toolbox: Toolbox
) -> PacketUpdate:
    """Write the answer from the packet alone."""
    command = packet.content.command
    if direct := packet.tool_routing.direct_answer if packet.tool_routing else "":
        answer = Answer(text=direct, decided_by="reflex")
    elif command is not None and command.text:
        answer = Answer(text=command.text, decided_by="reflex")
    else:
        decider = respond_plainly if command else decider
        settings = packet.governance.settings
        asks_about_tools = settings.enabled and talk_in(packet.content.original_prompt) in ABOUT_TOOLS
        catalogue = await toolbox.catalogue() if asks_about_tools else toolbox.last_catalogue
        answer = await decider(packet, catalogue, settings)
    text, violations = answer.text, 0
    if answer.decided_by == "model":
        from packetgate.models.echoes import ONLY_ECHOES, without_echoes
        from packetgate.models.stripping import ONLY_MARKUP, strip_markup  # compiles hundreds of patterns

        clean = strip_markup(answer.text, packet.session_words)
        known = (packet.session_words, *(str(field.value) for field in packet.content.data_fields))
        text, violations = (without_echoes(clean.text, known) or ONLY_ECHOES), clean.violations
        text = text if clean.text else ONLY_MARKUP
    dropped = "".join(f"Dropped: {note}.\n\n" for note in packet.governance.dropped_notes)
    notes = "".join(
        f"\n\n[{call.tool_name}: the full result can be read as {call.result.handle}]"
        for call in packet.calls
        if call.result and call.result.handle
    )
    fallback = _fallback_note(packet, answer)
    shown = with_inert_links(dropped + (answer.markdown or text) + answer.appendix + fallback, packet.session_words)
    shown += notes
    model_text = {MODEL_TEXT: text} if answer.appendix or fallback else {}
    removed = f", {violations} pieces of tool markup removed" if violations else ""
    metrics = packet.metrics.with_tokens(_STAGE, answer.usage).with_errors(*answer.errors(_STAGE))
    return {
        "response": Response(
            candidate=dropped + answer.text + fallback + notes if answer.markdown else shown,
            confidence=answer.confidence,
        ),
        "messages": [AIMessage(shown, id=answer.message_id, additional_kwargs=model_text)],
        "metrics": metrics.changed(violations=metrics.violations + violations),
        "status": Status(state=PacketState.COMPLETED),
        "reasoning": packet.reasoning.with_reflections(
            answer.reflection(_STAGE, f"{len(shown):,} characters{removed}")
        ),
    }


def _fallback_note(packet: CognitionPacket, answer: Answer) -> str:
    """Return a note about the stages that rules decided in place of a model; empty without one."""
    stages = [entry.step for entry in packet.reasoning.reflection_log if entry.is_fallback]
    stages += [_STAGE] if answer.is_fallback else []
    if not stages:
        return ""
    reasons = [error.message for error in packet.metrics.errors if error.stage in stages] + [answer.fallback_reason]
    why = shorten(next(filter(None, reasons), ""), _MAX_REASON_CHARS)
    note = f"[Decided without a language model: {', '.join(dict.fromkeys(stages))}; {why}]" if why else _LIKELIER
    return f"\n\n{note}"
