"""Intent detection by a language model."""

from pydantic import BaseModel

from deciders.language.forms import intent_form
from deciders.language.prompting import conversation, harmless, results
from deciders.protocols import IntentDecision
from deciders.reflex.reading import access_of, is_small_talk
from models.model import ModelSource
from models.structured import decide
from prompts.rendering import render
from state.base import Confidence, ConfidenceSource
from state.context import RoutingContext
from state.packet import CognitionPacket
from state.sections import Access
from tools.catalogue.toolbox import Toolbox

MAX_TOKENS = 160


class IntentAnswer(BaseModel):
    """What the model answers."""

    needs_tool: bool
    user_intent: str = ""
    access: Access = Access.READ
    confidence: Confidence


async def detect_by_model(
    source: ModelSource, packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext
) -> IntentDecision:
    """Ask the lite model; plain small talk is not worth a question.

    Raises:
        DecisionError: the model gave no usable answer.
    """
    request = packet.content.user_words
    if packet.tool_routing is None and is_small_talk(request):
        return IntentDecision(
            needs_tool=False,
            user_intent=request,
            access=Access.READ,
            reasoning="small talk",
            decided_by="reflex",
        )
    catalogue = await toolbox.catalogue()
    model, system = await source(), render("intent_system", ledger=harmless(catalogue.ledger))
    user = render("intent_user", request=request, results=results(packet))
    answer = await decide(
        model,
        await conversation(model, packet, [system], user, MAX_TOKENS),
        IntentAnswer,
        intent_form(),
        temperature=context.selection_temperature,
        max_tokens=MAX_TOKENS,
    )
    value, sure = answer.value, answer.probability("needs_tool")
    access = value.access if packet.tool_routing is None else _held(value.access, packet)
    return IntentDecision(
        needs_tool=value.needs_tool,
        user_intent=value.user_intent,
        access=access,
        confidence=value.confidence if sure is None else sure,
        confidence_source=ConfidenceSource.STATED if sure is None else ConfidenceSource.MEASURED,
        decided_by="model",
        usage=answer.usage,
    )


def _held(wanted: Access, packet: CognitionPacket) -> Access:
    """Return the access of a later pass. Results have been read by then: it stays within what the user's words ask."""
    asked = packet.intent.access.risks | access_of(packet.content.user_words).risks
    return wanted if wanted.risks <= asked else packet.intent.access
