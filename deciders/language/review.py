"""Review by a language model. It raises when it fails: the gate then counts 0.0."""

import json
from dataclasses import dataclass

from pydantic import BaseModel

from deciders.language.prompting import ModelSource, conversation, repair
from deciders.protocols import CallReview, Review
from models.structured import decide
from prompts.rendering import render
from state.base import Confidence
from state.context import RoutingContext
from state.packet import CognitionPacket
from state.routing import ToolCall
from tools.catalogue import Catalogue
from tools.provenance import untrusted_params


class ReviewEntry(BaseModel):
    """The judgement on one call."""

    call: int
    approved: bool
    confidence: Confidence
    reasoning: str = ""


class ReviewAnswer(BaseModel):
    """What the model answers."""

    reviews: list[ReviewEntry]


@dataclass(frozen=True)
class LanguageReviewer:
    """Asks the prime model about all calls of a pass at once."""

    model: ModelSource

    async def review(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
        """Judge each call.

        Raises:
            DecisionError: the model gave no usable answer, or did not judge every call exactly once.
        """
        calls = packet.routing.calls

        def objection(answer: ReviewAnswer) -> str | None:
            judged = sorted(entry.call for entry in answer.reviews)
            wanted = list(range(1, len(calls) + 1))
            return None if judged == wanted else f'"reviews" must judge each of the calls {wanted} once, not {judged}.'

        answer = await decide(
            await self.model(),
            conversation(
                packet,
                render("review_system"),
                render("review_user", request=packet.content.user_words, calls=_listed(calls, catalogue)),
            ),
            ReviewAnswer,
            temperature=context.review_temperature,
            max_tokens=context.review_max_tokens * max(1, len(calls)),
            validate=objection,
            repair_prompt=repair,
        )
        by_number = {entry.call: entry for entry in answer.value.reviews}
        return Review(
            reviews=tuple(
                CallReview(
                    call_id=call.call_id,
                    approved=by_number[number].approved,
                    confidence=by_number[number].confidence,
                    reasoning=by_number[number].reasoning,
                )
                for number, call in enumerate(calls, start=1)
            ),
            confidence=min((entry.confidence for entry in answer.value.reviews), default=0.0),
            reasoning="; ".join(entry.reasoning for entry in answer.value.reviews),
            decided_by="model",
            usage=answer.usage,
        )


def _listed(calls: tuple[ToolCall, ...], catalogue: Catalogue) -> str:
    return "\n".join(_described(number, call, catalogue) for number, call in enumerate(calls, start=1))


def _described(number: int, call: ToolCall, catalogue: Catalogue) -> str:
    spec = catalogue.get(call.tool_name)
    foreign = untrusted_params(call.provenance)
    origin = ", ".join(f"{name} from {source}" for name, source in foreign.items()) or "all from the user or a default"
    return (
        f"{number}. {call.tool_name} ({call.risk}): {spec.brief if spec else 'the tool is gone'}\n"
        f"   arguments: {json.dumps(call.params, ensure_ascii=False)}\n"
        f"   where the arguments come from: {origin}\n"
        f"   why it was chosen: {call.selection_reasoning}"
    )
