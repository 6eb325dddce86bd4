"""Review without a model: each check either holds or lowers the confidence, and says so."""

import asyncio

from deciders.protocols import CallReview, Review
from deciders.reflex.reading import access_of, senses_of, steps_in, verbs_in
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


async def review_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
    """Approve of calls whose arguments are valid and the user's, and whose risk the request asks for."""
    return await asyncio.to_thread(_review, packet, catalogue)


def _review(packet: CognitionPacket, catalogue: Catalogue) -> Review:
    return Review(reviews=tuple(_judge(call, packet, catalogue) for call in packet.routing.calls), decided_by="reflex")


def _judge(call: ToolCall, packet: CognitionPacket, catalogue: Catalogue) -> CallReview:
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
    ]
    failed = [(score, why) for holds, score, why in findings if not holds]
    confidence = min([SURE, *(score for score, _ in failed)])
    return CallReview(
        call_id=call.call_id,
        approved=not any(score < OFF_TOPIC for score, _ in failed),
        confidence=confidence,
        reasoning="; ".join(why for _, why in failed) or "valid, in your own words, and what the request asks for",
    )
