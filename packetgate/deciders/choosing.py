"""Build the deciders of all stages, by `reflex` or by models with a fallback to `reflex`.

The language deciders are imported only if there is a model, because their patterns take long to compile.
"""

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from packetgate.deciders.protocols import Decider, Deciders, Decision, Review, Selection, Tools
from packetgate.deciders.reflex.answer import respond_by_reflex
from packetgate.deciders.reflex.intent import detect_by_reflex, detect_certain_intent
from packetgate.models.source import ModelSource
from packetgate.models.turns import turn_budget
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, ModelError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.text.result_store import ResultStore
from packetgate.tools.text.tokens import ESTIMATE, TokenCounter

if TYPE_CHECKING:
    from packetgate.deciders.language.decisions import DecisionSource


def reflex_deciders() -> Deciders:
    """Return the deciders of `reflex`, which need no language model."""
    return Deciders(detect_by_reflex, select_by_reflex, review_by_reflex, respond_by_reflex)


async def select_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
    """Return calls of the likeliest tools, selected without a language model."""

    def select_in_thread() -> Selection:
        from packetgate.deciders.reflex.calls import select  # numpy is slow to load

        return select(packet, catalogue)

    return await asyncio.to_thread(select_in_thread)


async def review_by_reflex(packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
    """Return judgements on the calls, made without a language model."""

    def review_in_thread() -> Review:
        from packetgate.deciders.reflex.calls import review  # numpy is slow to load

        return review(packet, catalogue)

    return await asyncio.to_thread(review_in_thread)


def language_deciders(lite: ModelSource, prime: ModelSource, store: ResultStore | None = None) -> Deciders:
    """Return deciders that use models: `lite` selects, `prime` reviews and answers. A failed review has no fallback."""
    from packetgate.deciders.language.answer import respond_by_model
    from packetgate.deciders.language.review import review_by_model, skipping_harmless_calls
    from packetgate.deciders.language.selection import select_by_model

    return Deciders(
        intent=detect_certain_intent,
        selector=with_reflex_fallback(
            with_turn_budget(partial(select_by_model, lite, store=store, prime=prime)), select_by_reflex
        ),
        reviewer=with_turn_budget(skipping_harmless_calls(partial(review_by_model, prime, lite=lite))),
        responder=with_reflex_fallback(
            with_turn_budget(partial(respond_by_model, prime, store=store)), respond_by_reflex
        ),
        lite=lite,
        prime=prime,
    )


def with_reviewer(deciders: Deciders, source: "DecisionSource") -> Deciders:
    """Return the deciders, with a decision model in place of their reviewer."""
    from packetgate.deciders.language.decisions import review_by_decisions
    from packetgate.deciders.language.review import skipping_harmless_calls

    reviewer = with_turn_budget(skipping_harmless_calls(partial(review_by_decisions, source)))
    return replace(deciders, reviewer=reviewer)


def with_reflex_fallback(model: Decider[Tools, Decision], reflex: Decider[Tools, Decision]) -> Decider[Tools, Decision]:
    """Return a decider that falls back to `reflex` if the model cannot decide."""

    async def decide(packet: CognitionPacket, tools: Tools, context: RoutingContext) -> Decision:
        try:
            return await model(packet, tools, context)
        except DecisionError as error:
            return (await reflex(packet, tools, context)).as_fallback(error)

    return decide


def with_turn_budget(model: Decider[Tools, Decision]) -> Decider[Tools, Decision]:
    """Return a decider that is bound by the turn's time budget, which all stages share."""

    async def decide(packet: CognitionPacket, tools: Tools, context: RoutingContext) -> Decision:
        with turn_budget(packet.header.packet_id, context.turn_budget_s):
            return await model(packet, tools, context)

    return decide


async def token_counter(lite: ModelSource | None) -> TokenCounter:
    """Return the token counter of the selecting model; an estimating counter if the model has none."""
    try:
        count = (await lite()).token_counter if lite else None
    except ModelError:
        return ESTIMATE  # the selection reports the error
    return TokenCounter(count, is_exact=True) if count else ESTIMATE
