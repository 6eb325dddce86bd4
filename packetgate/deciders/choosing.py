"""Which decider serves each stage, given the models there are.

What asks models is imported where there is one: what they may write takes some hundred patterns to read.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from packetgate.deciders.protocols import D, Decider, Deciders, T
from packetgate.deciders.reflex.answer import respond_by_reflex
from packetgate.deciders.reflex.calls import review_by_reflex, select_by_reflex
from packetgate.deciders.reflex.intent import detect_by_reflex
from packetgate.models.source import Known, ModelSource
from packetgate.models.turns import in_turn
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, ModelError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.text.result_store import ResultStore
from packetgate.tools.text.tokens import ESTIMATE, TokenCounter

if TYPE_CHECKING:
    from packetgate.deciders.language.decisions import DecisionSource


def reflex_deciders() -> Deciders:
    """Return deciders that need no model."""
    return Deciders(detect_by_reflex, select_by_reflex, review_by_reflex, respond_by_reflex)


def language_deciders(lite: ModelSource, prime: ModelSource, kept: ResultStore | None = None) -> Deciders:
    """Return deciders by model: `lite` for selection, to which intent is left, `prime` for review and answer.

    Nothing stands in for the review: one that fails counts as 0.0, and the gate stays closed. Pictures are shown from
    where they are `kept`.
    """
    from packetgate.deciders.language.answer import respond_by_model
    from packetgate.deciders.language.intent import left_to_selection
    from packetgate.deciders.language.review import review_by_model, unless_spared
    from packetgate.deciders.language.selection import select_by_model

    return Deciders(
        intent=left_to_selection,
        selector=with_reflex(in_budget(partial(select_by_model, lite, kept=kept, prime=prime)), select_by_reflex),
        reviewer=in_budget(unless_spared(partial(review_by_model, prime, lite=lite))),
        responder=with_reflex(in_budget(partial(respond_by_model, prime, kept=kept)), respond_by_reflex),
        lite=lite,
        prime=prime,
    )


def reviewed_by(deciders: Deciders, source: "DecisionSource") -> Deciders:
    """Return deciders of which a decision model reviews. Nothing stands in for it either."""
    from packetgate.deciders.language.decisions import review_by_decisions
    from packetgate.deciders.language.review import unless_spared

    async def named() -> Known:
        model = await source()
        return Known(model.model, getattr(model, "provider", None))

    reviewer = in_budget(unless_spared(partial(review_by_decisions, source)))
    return replace(deciders, reviewer=reviewer, reviewing=named)


def with_reflex(model: Decider[T, D], reflex: Decider[T, D]) -> Decider[T, D]:
    """Return a decider by model, by reflex where the model could not decide; the decision says so."""

    async def decide(packet: CognitionPacket, tools: T, context: RoutingContext) -> D:
        try:
            return await model(packet, tools, context)
        except DecisionError as error:
            return (await reflex(packet, tools, context)).in_place_of(error)

    return decide


def in_budget(model: Decider[T, D]) -> Decider[T, D]:
    """Return a decider by model that waits for it as long as its turn may, all stages together."""

    async def decide(packet: CognitionPacket, tools: T, context: RoutingContext) -> D:
        with in_turn(packet.header.packet_id, context.turn_budget_s):
            return await model(packet, tools, context)

    return decide


async def token_counter(lite: ModelSource | None) -> TokenCounter:
    """Return what counts the tokens of tools as the selecting model reads them: its own counter, or the estimate."""
    try:
        count = (await lite()).token_counter if lite else None
    except ModelError:
        return ESTIMATE  # who asks the model to decide tells what is wrong with it
    return TokenCounter(count, is_exact=True) if count else ESTIMATE
