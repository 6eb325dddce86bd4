"""Build the deciders of all stages: without a model, or by models with a fallback to the deciders without one.

The language deciders are imported only if there is a model, because their patterns take long to compile.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from packetgate.deciders.fallback import plain_deciders
from packetgate.deciders.intent import detect_certain_intent
from packetgate.deciders.protocols import Decider, Deciders, Decision, Tools
from packetgate.models.pool import ModelSource
from packetgate.models.transport import one_turn
from packetgate.plugins import Plugins, installed
from packetgate.prompts.rendering import load_prompts
from packetgate.ranking.choice import ToolText, tool_text
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, ModelError, UnansweredError
from packetgate.state.packet import CognitionPacket
from packetgate.tools.text.result_store import ResultStore
from packetgate.tools.text.tokens import ESTIMATE, TokenCounter

if TYPE_CHECKING:
    from packetgate.deciders.language.decisions import DecisionSource


def reflex_deciders(plugins: Plugins | None = None) -> Deciders:
    """Return the deciders that need no language model: those of a plug-in, or the plain ones."""
    return (plugins or installed()).part("deciders") or plain_deciders()


def language_deciders(
    lite: ModelSource,
    prime: ModelSource,
    store: ResultStore | None = None,
    plugins: Plugins | None = None,
    *,
    fallback: bool = False,
) -> Deciders:
    """Return deciders that use models: `lite` selects, `prime` reviews and answers. A failed review has no fallback.

    Args:
        fallback: whether the deciders without a model replace a model that cannot decide. Otherwise a model that does
            not answer is an error, and an unusable answer selects nothing.
    """
    from packetgate.deciders.advice import Advisers
    from packetgate.deciders.language.answer import respond_by_model
    from packetgate.deciders.language.review import review_by_evidence, skipping_harmless_calls
    from packetgate.deciders.language.selection import select_by_model
    from packetgate.deciders.language.warming import PrefixWarmer

    load_prompts()
    plugins = plugins or installed()
    plugged: Deciders | None = plugins.part("deciders")
    advisers = Advisers.of(plugins)
    plain = plain_deciders(beside_model=True)
    rules = plugged if plugged and fallback else plain
    select = partial(select_by_model, lite, store=store, prime=prime, advisers=advisers)
    warmer = PrefixWarmer(lite, prime)
    respond = partial(respond_by_model, prime, store=store, advisers=advisers)
    return Deciders(
        intent=partial(detect_certain_intent, rules=plugged.intent if plugged else None),
        selector=in_one_turn(warmer.before(select), rules.selector, decides_unanswered=fallback),
        reviewer=in_one_turn(skipping_harmless_calls(partial(review_by_evidence, prime, advisers=advisers))),
        responder=in_one_turn(respond, rules.responder, decides_unanswered=fallback),
        replies=(plugged or plain).replies,
        lite=lite,
        warm=warmer.warm,
    )


def with_reviewer(deciders: Deciders, source: "DecisionSource") -> Deciders:
    """Return the deciders, with a decision model in place of their reviewer."""
    from packetgate.deciders.language.decisions import review_by_decisions
    from packetgate.deciders.language.review import skipping_harmless_calls

    reviewer = in_one_turn(skipping_harmless_calls(partial(review_by_decisions, source)))
    return replace(deciders, reviewer=reviewer)


def in_one_turn(
    model: Decider[Tools, Decision],
    fallback: Decider[Tools, Decision] | None = None,
    *,
    decides_unanswered: bool = False,
) -> Decider[Tools, Decision]:
    """Return a decider that does not ask an endpoint again if it did not answer an earlier stage of the turn.

    Args:
        fallback: decides if the model gives no usable answer.
        decides_unanswered: whether `fallback` also decides if the model does not answer; otherwise, the decider raises
            `ModelError`.
    """

    async def decide(packet: CognitionPacket, tools: Tools, context: RoutingContext) -> Decision:
        try:
            with one_turn(packet.header.packet_id):
                return await model(packet, tools, context)
        except DecisionError as error:
            if fallback is None:
                raise
            if isinstance(error, UnansweredError) and not decides_unanswered:
                raise ModelError(str(error)) from error
            return (await fallback(packet, tools, context)).as_fallback(error)

    return decide


async def palette_measure(lite: ModelSource | None) -> tuple[TokenCounter, ToolText]:
    """Return the token counter and the tool texts by which the selecting model's palette is measured."""
    try:
        model = await lite() if lite else None
    except ModelError:
        model = None  # the selection reports the error
    if model is None:
        return ESTIMATE, tool_text
    from packetgate.deciders.language.prompting import token_counter, tool_text_for

    return token_counter(model), tool_text_for(model)
