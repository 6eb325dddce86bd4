"""Answer with a language model."""

import asyncio
import re
from collections.abc import Sequence

from packetgate.deciders.advice import LIKELY, NO_ADVISERS, Advisers
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
from packetgate.models.model import Model, OfferedTool
from packetgate.models.pictures import Picture
from packetgate.models.pool import ModelSource
from packetgate.models.stripping import removes_call
from packetgate.prompts.rendering import render
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import fenced, shorten
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Access
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.reading import has_question
from packetgate.tools.text.result_store import ResultStore
from packetgate.tools.text.values import numbers_in

TEMPERATURE = 0.7  # of an answer without tool results
RESULTS_TEMPERATURE = 0.2  # of an answer with tool results
_MAX_APPENDED_CHARS = 1_500  # a longer result is not shown below an answer
_MAX_BESIDE_ANSWER_CHARS = 300  # the same below an answer to a question: small models name a number of the wrong thing

_REASON_CHARS = 300


async def respond_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    store: ResultStore | None = None,
    *,
    advisers: Advisers = NO_ADVISERS,
) -> Answer:
    """Return the selecting model's answer, or the prime model's, followed by facts that the answer omits."""
    response = packet.response
    answer = Answer(text=response.candidate, decided_by="model", message_id=response.message_id)
    if not response.candidate:
        model = await source()
        pictures = await answer_pictures(packet, store, reads_pictures=model.accepts_images)
        answer = await _asked_answer(model, packet, catalogue, context, pictures, advisers)
    below = _missing_results(packet, answer.text) + _calls_not_made(packet, answer.text)
    return answer.changed(appendix=below or await asyncio.to_thread(_not_looked_up, packet, catalogue, advisers))


async def _asked_answer(  # noqa: PLR0917
    model: Model,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    pictures: Sequence[Picture],
    advisers: Advisers,
) -> Answer:
    max_tokens, problems = context.answer_max_tokens, _problems(packet, with_reason=not model.is_local)
    tools: tuple[OfferedTool, ...] = ()
    if model.is_local and not packet.calls:
        offer = await asyncio.to_thread(tool_offer, model, packet, catalogue, advisers)
        tools = offer.tools if packet.context.palette else ()
        messages = await turn_messages(
            model, packet, catalogue, context, offer, max_tokens, pictures=pictures, note=problems
        )
    else:  # without tools: a small model that is offered tools after its own call calls again
        user = render(
            "answer_user", request=packet.content.user_words, results=fenced_results(packet), outcome=problems
        )
        ledger = "" if packet.calls else f"\nConnected servers:\n{without_control_tokens(catalogue.ledger)}"
        sources = "tools returned" + (" and the user attached" if packet.content.attachments else "")
        rules = render("answer_system", ledger=ledger, sources=sources)
        systems = [f"{persona}\n\n{rules}" for persona in persona_versions(model, context)]
        messages = await conversation(model, packet, systems, user, max_tokens, pictures=pictures)
    answer = await complete(
        model,
        messages,
        user_words=packet.session_words,
        temperature=RESULTS_TEMPERATURE if packet.calls else TEMPERATURE,
        max_tokens=max_tokens,
        tools=tools,
    )
    return Answer(
        text=answer.text,
        decided_by="model",
        usage=answer.usage,
        message_id=answer.message_id,
        fallback_reason=answer.problem,
    )


def _missing_results(packet: CognitionPacket, answer: str) -> str:
    """Return the results of which the answer omits a word; for a long result, its size and how to read it."""
    executed = [
        (call.tool_name, call.result)
        for call in packet.calls
        if call.status is ToolExecutionStatus.EXECUTED and call.result and call.result.output.strip()
    ]
    said, known = (
        {value for text in texts for value, _, _ in numbers_in(text)}
        for texts in ([answer], [packet.content.user_words, *(result.output for _, result in executed)])
    )
    answers_question = has_question(packet.content.user_words) and said <= known
    max_chars = _MAX_BESIDE_ANSWER_CHARS if answers_question else _MAX_APPENDED_CHARS
    shown, rest = "", packet.header.switch_hints.rest
    for name, result in executed:
        output = result.output.strip()
        if len(output) > max_chars and not result.handle:
            shown += f"\n\n[{name} returned {len(output):,} characters: {rest}]"
        elif len(output) <= max_chars and _words(output) - _words(answer):
            shown += f"\n\n{fenced(output)}"
    return shown


def _words(text: str) -> set[str]:
    return {*re.findall(r"[\w.-]*\w", text.casefold())}


def _calls_not_made(packet: CognitionPacket, answer: str) -> str:
    """Return a line for each call that did not succeed, and for each that the model left in its answer."""
    lines = []
    for at, call in enumerate(packet.calls, start=1):
        is_made_later = any(
            one.tool_name == call.tool_name and one.status is ToolExecutionStatus.EXECUTED for one in packet.calls[at:]
        )
        if call.status.is_final and call.status is not ToolExecutionStatus.EXECUTED and not is_made_later:
            is_stopped = call.status is ToolExecutionStatus.SKIPPED and call.result is None
            told = call.changed(review_reasoning=_what_stopped(call)) if is_stopped else call
            words, why = call_outcome(told, packet)
            lines.append(
                words.strip(": \n") if call.result and call.result.dry_run else words + shorten(why, _REASON_CHARS)
            )
    if removes_call(answer, packet.session_words):
        lines.append("Not made: a call that the model wrote as text")
    return "".join(f"\n\n[{line}]" for line in dict.fromkeys(lines))


def _not_looked_up(packet: CognitionPacket, catalogue: Catalogue, advisers: Advisers) -> str:
    """Return a line saying that no tool was called, if the request needs one or the last turn called one. Blocking."""
    routing = packet.tool_routing
    if routing is None or routing.all_calls or packet.content.attachments:
        return ""
    problems = [one.message for one in routing.corrections if not one.is_repaired]
    missed = ", ".join(routing.missed_tools)
    why = " ".join(problems) or routing.note or (missed and f"there is no tool {missed}")
    called = [entry.packet_id for entry in packet.context.result_ledger]
    may_go_on = packet.header.parent_packet_id in called  # small models say "checked out" instead of checking out
    if not (why or may_go_on or (advisers.probability_of_tool(packet, catalogue) or 0.0) >= LIKELY):
        return ""
    done = "looked up" if packet.intent.access is Access.READ else "done"
    return f"\n\n[Not {done}: no tool was called{why and f' ({shorten(why, _REASON_CHARS)})'}]"


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
        why = f" The reason: {routing.note}." if with_reason else ""
        return f"\n\n{render('no_tool', why=why)}" if routing.note else ""
    notes = [*dict.fromkeys(note for call in routing.all_calls if (note := not_run_reason(call, packet)))]
    if routing.note and (notes or routing.note != REPEATED):
        notes.append(f"{routing.note}.")
    return "\nWhat did not happen:\n" + "\n".join(f"- {note}" for note in notes) if notes else ""
