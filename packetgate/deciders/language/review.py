"""Review by a language model. It raises when it fails: the gate then counts 0.0."""

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict

from packetgate.deciders.language.forms import numbers_of, review_form
from packetgate.deciders.language.prompting import data, earlier_words
from packetgate.deciders.language.weighing import review_by_evidence
from packetgate.deciders.protocols import CallReview, Review, Reviewer
from packetgate.models.source import ModelSource, is_from
from packetgate.models.structured import Structured, decide
from packetgate.prompts.rendering import render
from packetgate.state.base import Confidence, ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.printing import compact_json
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.spec.tool_spec import ToolSpec

PLAIN = {"approved": True, "confidence": 0.95}
"""An approval, by example."""
REASONS = "Give your reasons."
BRIEF = "Give your reasons only where you do not approve, or are not sure."
_UNJUDGED = ConfidenceSource.UNJUDGED
BRIEF_CHARS, SCHEMA_CHARS = 300, 1_500
"""Of what a reviewed tool says of itself, and of its schema."""


class ReviewEntry(BaseModel):
    """The judgement on one call. Nothing in it is read kindly: a `"yes"` approves nothing."""

    model_config = ConfigDict(strict=True)

    approved: bool
    confidence: Confidence
    reasoning: str = ""


class ReviewAnswer(BaseModel):
    """What the model answers."""

    reviews: dict[str, ReviewEntry]
    """By the number of the call."""


async def review_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    lite: ModelSource | None = None,
) -> Review:
    """Ask the prime model about all calls of a pass at once; a model in this process about each.

    Args:
        lite: the model that selected.

    Raises:
        DecisionError: the model gave no usable answer, or did not judge every call exactly once.
    """
    model = await source()
    if model.tells_odds:
        threshold = context.confidence_threshold if await is_from(model, lite) else None
        return await review_by_evidence(model, packet, catalogue, threshold=threshold)
    calls = packet.routing.calls
    numbers = numbers_of(len(calls))

    def objection(answer: ReviewAnswer) -> str | None:
        judged = sorted(answer.reviews)
        if judged == sorted(numbers):
            return None
        return f'"reviews" must hold one verdict for each of the calls {", ".join(numbers)}, not for {judged}.'

    max_tokens = context.review_max_tokens * max(1, len(calls))
    why, plain = (REASONS, {**PLAIN, "reasoning": "it is what was asked for"}) if context.explain else (BRIEF, PLAIN)
    approval = compact_json({"reviews": {"1": plain}})
    system = render("review_system", why=why, approval=approval)
    answer = await decide(
        model,
        [SystemMessage(system), HumanMessage(to_review(packet, catalogue))],
        ReviewAnswer,
        review_form(len(calls), explain=context.explain),
        temperature=context.review_temperature,
        max_tokens=max_tokens,
        validate=objection,
    )
    reviews = tuple(_judgement(call, number, answer) for number, call in zip(numbers, calls, strict=True))
    measured = all(one.confidence_source is ConfidenceSource.MEASURED for one in reviews)
    return Review(
        reviews=reviews,
        confidence_source=ConfidenceSource.MEASURED if measured else ConfidenceSource.STATED,
        decided_by="model",
        usage=answer.usage,
    )


def unless_spared(reviewer: Reviewer) -> Reviewer:
    """Return a reviewer that is not asked about calls that risk nothing, where the settings spare it those."""

    async def review(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
        calls = packet.routing.calls
        if context.review == "risky" and all(map(risks_nothing, calls)):
            return Review(reviews=tuple(map(_unreviewed, calls)), decided_by="reflex", confidence_source=_UNJUDGED)
        return await reviewer(packet, catalogue, context)

    return review


def risks_nothing(call: ToolCall) -> bool:
    """Whether a call only reads, on the user's own machine and servers, with nothing but the user's words."""
    return call.risk is Risk.READ and not call.open_world and not call.foreign


def _unreviewed(call: ToolCall) -> CallReview:
    why = "it only reads, with the user's own words: the settings spare it the review"
    return CallReview(call_id=call.call_id, approved=True, confidence=1.0, confidence_source=_UNJUDGED, reasoning=why)


def to_review(packet: CognitionPacket, catalogue: Catalogue) -> str:
    """Return what a review judges: the request, and the calls by their numbers."""
    numbered = enumerate(packet.routing.calls, start=1)
    listed = "\n".join(_described(number, call, catalogue) for number, call in numbered)
    before = earlier_words(packet)
    earlier = f"\nEarlier requests, oldest first:\n{data(before)}\n" if before else ""
    return render("review_user", request=packet.content.user_words, earlier=earlier, calls=data(listed))


def _judgement(call: ToolCall, number: str, answer: Structured[ReviewAnswer]) -> CallReview:
    """Return the review of one call. Its confidence is the probability of approval, where that could be measured."""
    entry, sure = answer.value.reviews[number], answer.probability("reviews", number, "approved")
    confidence, source = entry.confidence, ConfidenceSource.STATED
    if sure is not None:
        confidence = sure if entry.approved else 1 - sure
        source = ConfidenceSource.MEASURED
    return CallReview(
        call_id=call.call_id,
        approved=entry.approved,
        confidence=confidence,
        confidence_source=source,
        reasoning=entry.reasoning,
    )


def _described(number: int, call: ToolCall, catalogue: Catalogue) -> str:
    spec = catalogue.get(call.tool_name)
    foreign = call.foreign
    origins = (
        ", ".join(f"{name} from {origin.source}{' (loud)' if origin.loud else ''}" for name, origin in foreign.items())
        or "all from the user or a default"
    )
    return (
        f"{number}. {call.tool_name} ({call.looks}): {spec.brief[:BRIEF_CHARS] if spec else 'the tool is gone'}\n"
        f"   arguments: {compact_json(call.params)}\n"
        f"   it takes: {_takes(spec)}\n"
        f"   where the arguments come from: {origins}"
    )


def _takes(spec: ToolSpec | None) -> str:
    """Return what a tool takes, or only its parameters' names and types where that is long."""
    if spec is None:
        return "unknown"
    return spec.takes if len(spec.takes) <= SCHEMA_CHARS else spec.signature()
