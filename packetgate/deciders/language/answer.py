"""Answer with a language model."""

import asyncio
import re

from packetgate.deciders.advice import NO_ADVISERS, Advisers
from packetgate.deciders.fallback import call_outcome
from packetgate.deciders.language.prompting import (
    answer_pictures,
    conversation,
    fenced_results,
    not_run_reason,
    persona_versions,
    tool_offer,
    turn_messages,
    without_control_tokens,
)
from packetgate.deciders.outcome import REPEATED
from packetgate.deciders.protocols import Answer
from packetgate.models.answers import complete
from packetgate.models.model import OfferedTool
from packetgate.models.pool import ModelSource
from packetgate.prompts.rendering import render
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import fenced
from packetgate.state.routing import ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.reading import has_question
from packetgate.tools.text.result_store import ResultStore
from packetgate.tools.text.values import numbers_in

TEMPERATURE = 0.7  # of an answer without tool results
RESULTS_TEMPERATURE = 0.2  # of an answer with tool results
NO_TOOL_NOTE = (
    "(Nothing was done or looked up for this{why}, and no tool can be called now. "
    "Say what you know, or that you cannot do it.)"
)
_MAX_APPENDED_CHARS = 1_500  # a longer result is not shown below an answer
_MAX_BESIDE_ANSWER_CHARS = 300  # the same below an answer to a question: small models say a number of the wrong thing


async def respond_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    store: ResultStore | None = None,
    *,
    advisers: Advisers = NO_ADVISERS,
) -> Answer:
    """Return the selecting model's answer if it gave one; otherwise ask the prime model."""
    if packet.response.candidate:
        response = packet.response
        return Answer(text=response.candidate, decided_by="model", message_id=response.message_id)
    model = await source()
    pictures = await answer_pictures(packet, store, reads_pictures=model.accepts_images)
    max_tokens, problems = context.answer_max_tokens, _problems(packet, with_reason=not model.is_local)
    has_calls = bool(packet.tool_routing and packet.tool_routing.all_calls)
    tools: tuple[OfferedTool, ...] = ()
    if model.is_local and not has_calls:
        offer = await asyncio.to_thread(tool_offer, model, packet, catalogue, advisers)
        tools = offer.tools if packet.context.palette else ()
        messages = await turn_messages(
            model, packet, catalogue, context, offer, max_tokens, pictures=pictures, note=problems
        )
    else:  # without tools: a small model that is offered tools after its own call calls again
        user = render(
            "answer_user", request=packet.content.user_words, results=fenced_results(packet), outcome=problems
        )
        ledger = "" if has_calls else f"\nConnected servers:\n{without_control_tokens(catalogue.ledger)}"
        sources = "tools returned" + (" and the user attached" if packet.content.attachments else "")
        rules = render("answer_system", ledger=ledger, sources=sources)
        systems = [f"{persona}\n\n{rules}" for persona in persona_versions(model, context)]
        messages = await conversation(model, packet, systems, user, max_tokens, pictures=pictures)
    answer = await complete(
        model,
        messages,
        user_words=packet.session_words,
        temperature=RESULTS_TEMPERATURE if has_calls else TEMPERATURE,
        max_tokens=max_tokens,
        tools=tools,
    )
    return Answer(
        text=answer.text,
        appendix=_missing_results(packet, answer.text) + _calls_not_made(packet),
        decided_by="model",
        usage=answer.usage,
        message_id=answer.message_id,
        fallback_reason=answer.problem,
    )


def _missing_results(packet: CognitionPacket, answer: str) -> str:
    if packet.tool_routing is None:
        return ""
    outputs = [
        call.result.output.strip()
        for call in packet.tool_routing.all_calls
        if call.status is ToolExecutionStatus.EXECUTED and call.result
    ]
    said, known = (
        {value for text in texts for value, _, _ in numbers_in(text)}
        for texts in ([answer], [packet.content.user_words, *outputs])
    )
    answers_question = has_question(packet.content.user_words) and said <= known
    max_chars = _MAX_BESIDE_ANSWER_CHARS if answers_question else _MAX_APPENDED_CHARS
    short = [output for output in outputs if 0 < len(output) <= max_chars]
    return "".join(f"\n\n{fenced(output)}" for output in short if _words(output) - _words(answer))


def _words(text: str) -> set[str]:
    return {*re.findall(r"[\w.-]*\w", text.casefold())}


def _calls_not_made(packet: CognitionPacket) -> str:
    """Return a line for each call that the gate stopped without a question."""
    stopped = [
        call.changed(review_reasoning=_what_stopped(call))
        for call in (packet.tool_routing.all_calls if packet.tool_routing else ())
        if call.status is ToolExecutionStatus.SKIPPED and call.result is None
    ]
    return "".join(f"\n\n[{call_outcome(call, packet)[0]}]" for call in stopped)


def _what_stopped(call: ToolCall) -> str:
    """Return the last reason of a review, which decided; a rule's reason may have several parts."""
    if call.verdict is not None and call.verdict.effect == "refuse":
        return call.verdict.why
    return call.review_reasoning.rpartition("; ")[2]


def _problems(packet: CognitionPacket, *, with_reason: bool) -> str:
    routing = packet.tool_routing
    if routing is None:
        return ""
    if not routing.all_calls:
        why = f" ({routing.note})" if with_reason else ""
        return f"\n\n{NO_TOOL_NOTE.format(why=why)}" if routing.note else ""
    notes = [*dict.fromkeys(note for call in routing.all_calls if (note := not_run_reason(call, packet)))]
    if routing.note and (notes or routing.note != REPEATED):
        notes.append(f"{routing.note}.")
    return "\nWhat did not happen:\n" + "\n".join(f"- {note}" for note in notes) if notes else ""
