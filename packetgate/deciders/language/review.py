"""Review calls by all evidence and the prime model's yes or no. If the review fails, the gate approves no call."""

import asyncio
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from packetgate.deciders.advice import NO_ADVISERS, Advisers
from packetgate.deciders.language.evidence import correctness_probability, min_probability
from packetgate.deciders.language.prompting import fenced_text, without_control_tokens
from packetgate.deciders.protocols import Review, Reviewer
from packetgate.gate.confidence import CallReview
from packetgate.models.model import Model, WordProbabilities
from packetgate.models.pool import ModelSource
from packetgate.prompts.rendering import render
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket, is_user_message
from packetgate.state.printing import compact_json
from packetgate.state.routing import Risk, ToolCall
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.learned import DIGITS, log_odds
from packetgate.tools.spec.tool_spec import ToolSpec

YES, NO = "yes", "no"
_APPROVED = 0.5
_CLEAR_NO = -2.2  # log odds of a yes, from which no other evidence approves a call: models that guess stay above
_MAX_YES_LOG_ODDS = 4.0  # models rarely exceed these log odds of a yes
_BRIEF_CHARS, _SCHEMA_CHARS = 300, 1_500
_EARLIER_REQUESTS, _EARLIER_CHARS = 4, 500


async def yes_or_no(
    model: Model, request: str, spec: ToolSpec, params: Mapping[str, Any], *, earlier: str = "", **options: Any
) -> WordProbabilities:
    """Return the model's yes or no to a call, with its probabilities if the model returns them."""
    return await model.word_probabilities(check_messages(request, spec, params, earlier), (YES, NO), **options)


def check_messages(request: str, spec: ToolSpec, params: Mapping[str, Any], earlier: str = "") -> list[BaseMessage]:
    """Return the question whether a call is right, after worked examples."""
    messages: list[BaseMessage] = [SystemMessage(render("check_system"))]
    for example_request, name, brief, example_params, verdict in _EXAMPLES:
        messages += [HumanMessage(_question(example_request, name, brief, example_params)), AIMessage(verdict)]
    question = _question(request, spec.name, without_control_tokens(spec.brief[:_BRIEF_CHARS]), params, earlier)
    return [*messages, HumanMessage(question)]


def evidence_from_verdict(verdict: WordProbabilities) -> dict[str, float]:
    """Return the evidence from a yes or no; empty for any other answer."""
    if verdict.by_word:
        return {"yes": round(log_odds(verdict.by_word[YES]), DIGITS)}
    return {"said": 1.0 if verdict.said == YES else -1.0} if verdict.said else {}


def _question(request: str, name: str, brief: str, params: Mapping[str, Any], earlier: str = "") -> str:
    call = without_control_tokens(f"{name}({compact_json(dict(params))})")
    tool = fenced_text(f"{name}: {brief}")
    return render("check_user", earlier=earlier, request=fenced_text(request), tool=tool, call=fenced_text(call))


# fmt: off
_EXAMPLES: tuple[tuple[str, str, str, dict[str, Any], str], ...] = (
    ("Play some jazz in the kitchen, not too loud: 30 percent.", "play_music", "Plays music in a room.",
     {"genre": "jazz", "room": "kitchen", "volume": 30}, YES),
    ("Which of my meetings on 4 June can be moved?", "add_meeting", "Adds a meeting to the calendar.",
     {"title": "meeting", "date": "4 June"}, NO),
    ("How do bees find their way home?", "search_flights", "Finds flights between two airports.",
     {"origin": "home", "destination": "bees"}, NO),
    ("Convert 12 miles to kilometres", "convert_length", "Converts a length to another unit.",
     {"value": 12, "from": "miles", "to": "kilometres"}, YES),
    ("Remind me at 8 to water the plants", "set_reminder", "Sets a reminder.",
     {"text": "water the plants", "time": "20:30"}, NO),
)
# fmt: on
"""Request, tool, description, arguments and verdict of worked examples."""


async def review_by_evidence(
    source: ModelSource,
    packet: CognitionPacket,
    catalogue: Catalogue,
    context: RoutingContext,
    *,
    advisers: Advisers = NO_ADVISERS,
) -> Review:
    """Return the review of a pass's calls, from all evidence and the prime model's yes or no.

    The model reviews a call only if its answer can move the call's probability across the threshold.
    """
    model, calls, threshold = await source(), packet.routing.calls, context.confidence_threshold
    known = [call for call in calls if call.tool_name in catalogue]
    scores = await asyncio.to_thread(advisers.scores, known, packet, catalogue)
    scored = {call.call_id: score for call, score in zip(known, scores, strict=True)}
    reviews, usage, how = [], TokenUsage(), ConfidenceSource.CALIBRATED
    for call in calls:
        spec = catalogue.get(call.tool_name)
        if spec is None:
            reviews.append(CallReview.failed(call, "the tool no longer exists"))
            continue
        score = scored[call.call_id]
        evidence = {**call.evidence, **score.evidence}
        verdict, denies = "the model was not asked", False
        if _can_decide(evidence, threshold):
            answer = await yes_or_no(
                model,
                packet.content.user_words,
                spec,
                call.params,
                earlier=_earlier_requests(packet),
                max_tokens=context.review_max_tokens,
                temperature=context.review_temperature,
            )
            usage += answer.usage
            found = evidence_from_verdict(answer)
            evidence |= found
            says = YES if sum(found.values()) >= 0 else NO
            verdict = f"the model says {says}" if found else "the model says neither yes nor no"
            denies = found.get("yes", 0.0) <= _CLEAR_NO or ("said" in found and says == NO)
        probability = correctness_probability(evidence)
        reviews.append(
            CallReview(
                call_id=call.call_id,
                approved=probability >= _APPROVED and not denies,
                confidence=probability,
                confidence_source=how,
                evidence=evidence,
                is_improbable=probability < min_probability(call, packet),
                reasoning="; ".join([verdict, *score.reasons]),
            )
        )
    return Review(reviews=tuple(reviews), confidence_source=how, decided_by="model", usage=usage)


def _can_decide(evidence: Mapping[str, float], threshold: float) -> bool:
    """Whether a yes or no can move a call's probability across the threshold."""
    possible = [{"yes": odds} for odds in (-_MAX_YES_LOG_ODDS, _MAX_YES_LOG_ODDS)] + [{"said": -1.0}, {"said": 1.0}]
    found = [correctness_probability({**evidence, **one}) for one in possible]
    return min(found) < threshold <= max(found)


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
    earlier = _earlier_requests(packet)
    return render("review_user", request=packet.content.user_words, earlier=earlier, calls=fenced_text(listed))


def _earlier_requests(packet: CognitionPacket) -> str:
    requests = [message.text[:_EARLIER_CHARS] for message in packet.history if is_user_message(message)]
    shown = "\n".join(requests[-_EARLIER_REQUESTS:])
    return f"Earlier requests, oldest first:\n{fenced_text(shown)}\n" if shown else ""


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
