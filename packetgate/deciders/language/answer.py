"""The answer, by a language model."""

import asyncio
from decimal import Decimal

from packetgate.deciders.language.prompting import (
    attached_pictures,
    conversation,
    earlier_pictures,
    harmless,
    outcome_of,
    results,
    returned_pictures,
)
from packetgate.deciders.language.turn import PERSONA_CHARS, offer_of, persona_of, turn_messages
from packetgate.deciders.outcome import REPEATED
from packetgate.deciders.protocols import Answer
from packetgate.deciders.reflex.reading import asks
from packetgate.models.calling import OfferedTool
from packetgate.models.completion import complete
from packetgate.models.source import ModelSource
from packetgate.prompts.rendering import render
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import fenced
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.provenance.values import numbers_in
from packetgate.tools.text.result_store import ResultStore

TEMPERATURE, OF_RESULTS = 0.7, 0.2
"""Of an answer, and of one that says what tools returned."""
NO_TOOL = (
    "(Nothing was done or looked up for this{why}, and no tool can be called now. "
    "Say what you know, or that you cannot do it.)"
)
"""Said to the model in the user's place, where no tool was called and one may have been needed."""
SHOWN_CHARS = 1_500
"""Longest result that is shown below the words of a model in this process."""


async def respond_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    kept: ResultStore | None = None,
) -> Answer:
    """Ask the prime model.

    Raises:
        DecisionError: the model could not be asked, or said nothing.
    """
    if packet.response.candidate:  # the selection's words
        said = packet.response
        return Answer(text=said.candidate, decided_by="model", message_id=said.message_id)
    model = await source()
    pictures = [
        *await earlier_pictures(packet, kept, sees=model.sees),
        *await attached_pictures(packet, kept),
        *await returned_pictures(packet, kept, sees=model.sees),
    ]
    most, outcome = context.answer_max_tokens, _outcome(packet, told_why=not model.local_info)
    called = bool(packet.tool_routing and packet.tool_routing.all_calls)
    tools: tuple[OfferedTool, ...] = ()
    if model.local_info and not called:
        offer = await asyncio.to_thread(offer_of, model, packet, catalogue)
        tools = offer.tools if packet.context.palette else ()
        messages = await turn_messages(model, packet, catalogue, context, offer, most, pictures=pictures, note=outcome)
    else:  # a small model that has tools in view, and a call of its own, goes on writing calls
        user = render("answer_user", request=packet.content.user_words, results=results(packet), outcome=outcome)
        ledger = "" if called else f"\nConnected servers:\n{harmless(catalogue.ledger)}"
        sources = "tools returned" + (" and the user attached" if packet.content.attachments else "")
        rules = render("answer_system", ledger=ledger, sources=sources)
        persona = persona_of(model, context)
        systems = [f"{one}\n\n{rules}" for one in dict.fromkeys((persona, persona[:PERSONA_CHARS]))]
        messages = await conversation(model, packet, systems, user, most, pictures=pictures)
    answer = await complete(
        model,
        messages,
        user_words=packet.spoken,
        temperature=OF_RESULTS if called else TEMPERATURE,
        max_tokens=most,
        tools=tools,
    )
    return Answer(
        text=answer.text,
        below=_below(packet, answer.text) if model.local_info else "",
        decided_by="model",
        usage=answer.usage,
        message_id=answer.message_id,
        fallback_reason=answer.problem,
    )


def _below(packet: CognitionPacket, words: str) -> str:
    """Return the short results that words leave out, where something is to be shown or done and not to be answered.

    Small models say that a file was read, and not what is in it. They also answer with numbers of their own: below such
    an answer stands what the tools returned.
    """
    if packet.tool_routing is None:
        return ""
    said = " ".join(words.split())
    outputs = [
        call.result.output.strip()
        for call in packet.tool_routing.all_calls
        if call.status is ToolExecutionStatus.EXECUTED and call.result
    ]
    if asks(packet.content.user_words) and _numbers(words) <= _numbers(packet.content.user_words, *outputs):
        return ""
    left = [one for one in outputs if one and len(one) <= SHOWN_CHARS and " ".join(one.split()) not in said]
    return "".join(f"\n\n{fenced(one)}" for one in left)


def _outcome(packet: CognitionPacket, *, told_why: bool) -> str:
    """Say in so many words what did not happen, so that no result is made up.

    Without a call there is nothing to list: small models repeat a list, and reasons, and do what they are told.
    """
    routing = packet.tool_routing
    if routing is None:
        return ""
    if not routing.all_calls:
        why = f" ({routing.note})" if told_why else ""
        return f"\n\n{NO_TOOL.format(why=why)}" if routing.note else ""
    notes = [*dict.fromkeys(note for call in routing.all_calls if (note := outcome_of(call, packet)))]
    if routing.note and (notes or routing.note != REPEATED):  # what was done anyway is not missing
        notes.append(f"{routing.note}.")
    return "\nWhat did not happen:\n" + "\n".join(f"- {note}" for note in notes) if notes else ""


def _numbers(*texts: str) -> set[Decimal]:
    return {value for text in texts for value, _, _ in numbers_in(text)}
