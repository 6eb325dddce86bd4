"""Review calls with a language model. If the review raises an error, the gate approves no call."""

from collections.abc import Sequence

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict

from packetgate.deciders.advice import NO_ADVISERS, Advisers
from packetgate.deciders.language.evidence import review_by_evidence
from packetgate.deciders.language.prompting import fenced_text
from packetgate.deciders.protocols import Review, Reviewer
from packetgate.gate.confidence import CallReview
from packetgate.models.model import structured_answer
from packetgate.models.pool import ModelSource, is_model_of
from packetgate.models.schemas import CONFIDENCE, AnswerForm, Choice, object_schema, text_schema
from packetgate.prompts.rendering import render
from packetgate.state.base import Confidence, ConfidenceSource
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, is_user_message
from packetgate.state.printing import compact_json
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue

_BRIEF_CHARS, _SCHEMA_CHARS, _REASON_CHARS = 300, 1_500, 200
EARLIER_REQUESTS, EARLIER_CHARS = 4, 500


class ReviewEntry(BaseModel):
    """The verdict on one call. Types are strict: the text `"true"` is not an approval."""

    model_config = ConfigDict(strict=True)

    approved: bool
    confidence: Confidence
    reasoning: str = ""


class ReviewAnswer(BaseModel):
    """The model's structured answer."""

    reviews: dict[str, ReviewEntry]  # keys: "1", "2", ... for the calls in order


async def review_by_model(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    *,
    lite: ModelSource | None = None,
    advisers: Advisers = NO_ADVISERS,
) -> Review:
    """Return the prime model's review: one request for all calls, or one for each call to a model in this process."""
    model = await source()
    if model.is_local:
        threshold = context.confidence_threshold if await is_model_of(model, lite) else None
        return await review_by_evidence(model, packet, catalogue, threshold=threshold, advisers=advisers)
    calls = {str(number): call for number, call in enumerate(packet.routing.calls, start=1)}

    def objection(answer: ReviewAnswer) -> str | None:
        judged = sorted(answer.reviews)
        if judged == sorted(calls):
            return None
        return f'"reviews" must hold one verdict for each of the calls {", ".join(calls)}, not for {judged}.'

    approval = compact_json({"reviews": {"1": {"approved": True, "confidence": 0.95}}})
    answer = await structured_answer(
        model,
        [SystemMessage(render("review_system", approval=approval)), HumanMessage(calls_to_review(packet, catalogue))],
        ReviewAnswer,
        review_form([*calls]),
        temperature=context.review_temperature,
        max_tokens=context.review_max_tokens * max(1, len(calls)),
        validate=objection,
    )
    reviews = []
    for number, call in calls.items():
        entry, probability = answer.value.reviews[number], answer.probability("reviews", number, "approved")
        confidence, how = entry.confidence, ConfidenceSource.STATED
        if probability is not None:
            confidence, how = probability if entry.approved else 1 - probability, ConfidenceSource.MEASURED
        review = CallReview(
            call_id=call.call_id,
            approved=entry.approved,
            confidence=confidence,
            confidence_source=how,
            reasoning=entry.reasoning,
        )
        reviews.append(review)
    is_measured = all(review.confidence_source is ConfidenceSource.MEASURED for review in reviews)
    return Review(
        reviews=tuple(reviews),
        confidence_source=ConfidenceSource.MEASURED if is_measured else ConfidenceSource.STATED,
        decided_by="model",
        usage=answer.usage,
    )


def review_form(numbers: Sequence[str]) -> AnswerForm:
    """Return the output form of a review: a verdict for each call by its number. An approval needs no reasoning."""
    reasoned = object_schema(approved={"type": "boolean"}, confidence=CONFIDENCE, reasoning=text_schema(_REASON_CHARS))
    plain = object_schema(approved={"const": True}, confidence=CONFIDENCE)
    return AnswerForm(
        "review",
        object_schema(reviews=object_schema(**{number: {"anyOf": [plain, reasoned]} for number in numbers})),
        choices=tuple(Choice.from_values("reviews", number, "approved", values=[True, False]) for number in numbers),
    )


def skipping_harmless_calls(reviewer: Reviewer) -> Reviewer:
    """Return a reviewer that, with `review = "risky"`, approves a pass without review if all its calls are harmless."""

    async def review(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
        if context.review != "risky" or not all(map(is_harmless, packet.routing.calls)):
            return await reviewer(packet, catalogue, context)
        reason = 'not reviewed: a read with only the user\'s own words, and the setting is review = "risky"'
        return Review.approving(packet.routing.calls, reason)

    return review


def is_harmless(call: ToolCall) -> bool:
    """Return whether a call only reads, reaches no external service, and has only arguments of the user."""
    return call.risk is Risk.READ and not call.open_world and not call.unstated_origins


def calls_to_review(packet: CognitionPacket, catalogue: Catalogue) -> str:
    """Return the request and its numbered calls, as text for a reviewer."""
    listed = "\n".join(_described_call(at, call, catalogue) for at, call in enumerate(packet.routing.calls, start=1))
    requests = [message.text[:EARLIER_CHARS] for message in packet.history if is_user_message(message)]
    shown = "\n".join(requests[-EARLIER_REQUESTS:])
    earlier = f"\nEarlier requests, oldest first:\n{fenced_text(shown)}\n" if shown else ""
    return render("review_user", request=packet.content.user_words, earlier=earlier, calls=fenced_text(listed))


def _described_call(number: int, call: ToolCall, catalogue: Catalogue) -> str:
    spec = catalogue.get(call.tool_name)
    foreign = [
        f"{name} from {origin.source}{' (flagged)' if origin.is_flagged else ''}"
        for name, origin in call.unstated_origins.items()
    ]
    brief, takes = "the tool no longer exists", "unknown"
    if spec:
        brief = spec.brief[:_BRIEF_CHARS]
        takes = spec.schema_text if len(spec.schema_text) <= _SCHEMA_CHARS else spec.signature()
    return (
        f"{number}. {call.tool_name} ({call.apparent_risk}): {brief}\n"
        f"   arguments: {compact_json(call.params)}\n"
        f"   it takes: {takes}\n"
        f"   where the arguments come from: {', '.join(foreign) or 'all from the user or a default'}"
    )
