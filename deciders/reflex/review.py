"""Review without a model: each check either holds or lowers the confidence, and says so."""

import asyncio
import json
from collections.abc import Sequence

from deciders.protocols import CallReview, Review
from deciders.reflex.following import request_of
from deciders.reflex.reading import access_of, is_question, senses_of, steps_in, verbs_in
from deciders.values.filling import fill
from deciders.values.mentions import Span
from state.context import RoutingContext
from state.packet import CognitionPacket
from state.routing import Risk, ToolCall
from state.sections import Access
from tools.catalogue.catalogue import Catalogue
from tools.text.words import words_of

SURE = 0.95
NOT_ASKED_FOR = 0.3
NOT_GROUNDED = 0.4
OFF_TOPIC = 0.6
LEFT_OVER = 0.6
_DOUBTFUL = frozenset({"quoted", "code", "url", "email", "path", "number"})
"""Kinds of mentions that stand for nothing else than a value; numbers only in digits."""


async def review_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
    """Approve of calls whose arguments are valid and the user's, and whose risk the request asks for."""
    return await asyncio.to_thread(_review, packet, catalogue)


def _review(packet: CognitionPacket, catalogue: Catalogue) -> Review:
    left = _left_over(packet, catalogue)
    reviews = tuple(_judge(call, packet, catalogue, left) for call in packet.routing.calls)
    return Review(reviews=reviews, decided_by="reflex")


def _left_over(packet: CognitionPacket, catalogue: Catalogue) -> list[str]:
    """Return what the step names and none of its calls takes: a file, a number, a date, a quoted text."""
    steps = steps_in(request_of(packet))
    step = steps[min(packet.routing.step, len(steps) - 1)]
    made = (*packet.routing.step_calls, *packet.routing.queued_calls)
    calls = [call for call in made if call.tool_name in catalogue]
    held = " ".join(json.dumps(call.params, ensure_ascii=False) for call in calls).casefold()
    if not calls:
        return []
    found = [
        {span.text: None for span in fill(spec, step.replace(spec.name, " ")).unused if _is_value(span, step)}
        for spec in (catalogue[call.tool_name] for call in calls)
    ]
    return [text for text in found[0] if all(text in one for one in found) and text.casefold() not in held]


def _is_value(span: Span, step: str) -> bool:
    """Whether a mention must be a value; a number in a question may be what is asked about."""
    return span.kind in _DOUBTFUL and (span.kind != "number" or (span.text[:1].isdigit() and not is_question(step)))


def _judge(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue, left: Sequence[str]) -> CallReview:
    spec = catalogue.get(call.tool_name)
    if spec is None:
        return CallReview(call_id=call.call_id, approved=False, confidence=0.0, reasoning="the tool is gone")
    request = packet.content.user_words
    ungrounded = call.foreign
    asked = {*senses_of(verbs_in(request)), *verbs_in(request)}
    does = {*words_of(spec.upstream_name), *senses_of(words_of(spec.upstream_name))}
    terms = {term for hit in catalogue.ranking.rank(request, 50) if hit.name == spec.name for term in hit.terms}
    findings = [
        (
            any(call.risk in access_of(step).risks for step in steps_in(request)),
            NOT_ASKED_FOR,
            f"the request does not ask for {call.risk} access",
        ),
        (
            not ungrounded,
            NOT_GROUNDED,
            "not in your words: " + ", ".join(f"`{name}` (from {origin.told})" for name, origin in ungrounded.items()),
        ),
        (
            bool(asked & does or terms) or (not asked and "read" in does),
            OFF_TOPIC,
            "the request and the tool share no word",
        ),
        (
            access_of(request) is Access.READ or call.risk is not Risk.READ or bool(asked & does),
            OFF_TOPIC,
            "the request asks for a change, and the tool only reads",
        ),
        (not left, LEFT_OVER, "your words also name what it does not take: " + ", ".join(f"`{one}`" for one in left)),
    ]
    failed = [(score, why) for holds, score, why in findings if not holds]
    confidence = min([SURE, *(score for score, _ in failed)])
    return CallReview(
        call_id=call.call_id,
        approved=not any(score < OFF_TOPIC for score, _ in failed),
        confidence=confidence,
        reasoning="; ".join(why for _, why in failed) or "valid, in your own words, and what the request asks for",
    )
