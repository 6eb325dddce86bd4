"""The answer, by a language model."""

from deciders.language.pictures import attached_pictures, earlier_pictures, returned_pictures
from deciders.language.prompting import conversation, harmless, results
from deciders.protocols import Answer
from models.completion import complete
from models.source import ModelSource
from prompts.rendering import render
from state.context import RoutingContext
from state.packet import CognitionPacket
from state.transitions import ToolExecutionStatus
from tools.catalogue.catalogue import Catalogue
from tools.text.kept import KeptResults

TEMPERATURE = 0.7
PERSONA_CHARS = 4_000
"""Of a longer persona, what is kept where the model's context is too small for all of it."""


async def respond_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    kept: KeptResults | None = None,
) -> Answer:
    """Ask the prime model.

    Raises:
        DecisionError: the model could not be asked, or said nothing.
    """
    model = await source()
    user = render("answer_user", request=packet.content.user_words, results=results(packet), outcome=_outcome(packet))
    rules = render("answer_system", ledger=harmless(catalogue.ledger))
    persona = harmless(context.persona.strip())
    systems = [f"{one}\n\n{rules}" if one else rules for one in dict.fromkeys((persona, persona[:PERSONA_CHARS]))]
    pictures = [
        *await earlier_pictures(packet, kept, sees=model.sees),
        *await attached_pictures(packet, kept),
        *await returned_pictures(packet, kept, sees=model.sees),
    ]
    answer = await complete(
        model,
        await conversation(model, packet, systems, user, context.answer_max_tokens, pictures=pictures),
        user_words=packet.spoken,
        temperature=TEMPERATURE,
        max_tokens=context.answer_max_tokens,
    )
    return Answer(
        text=answer.text,
        decided_by="model",
        usage=answer.usage,
        message_id=answer.message_id,
        fallback_reason=answer.problem,
    )


def _outcome(packet: CognitionPacket) -> str:
    """Say in so many words what did not happen, so that no result is made up."""
    routing = packet.tool_routing
    if routing is None:
        return ""
    notes = [
        f"{call.tool_name} did not run to an end: it is {call.status.replace('_', ' ')}. "
        f"{call.review_reasoning and f'({call.review_reasoning})'}"
        for call in routing.all_calls
        if call.status not in {ToolExecutionStatus.EXECUTED, ToolExecutionStatus.FAILED}
    ]
    off = {call.risk for call in routing.all_calls if call.result and call.result.dry_run}
    ways = packet.header.way_out
    notes += [f"{risk} tools are switched off; tell the user that {ways.of(risk)}." for risk in sorted(off)]
    if routing.note:
        notes.append(f"{routing.note}." if routing.all_calls else f"No tool was called: {routing.note}.")
    return "\nWhat did not happen:\n" + "\n".join(f"- {note}" for note in notes) if notes else ""
