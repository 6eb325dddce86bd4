"""Trying a model out: a review and a selection, asked for as in a turn. Nothing of them runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from deciders.language.forms import tool_of
from deciders.language.review import LanguageReviewer
from deciders.language.selection import LanguageSelector
from deciders.protocols import Decision
from models.model import Model, ModelSource
from models.probe import TimedAnswer, WatchedModel
from state.base import ConfidenceSource
from state.context import RoutingContext
from state.errors import DecisionError
from state.packet import CognitionPacket
from state.routing import ToolCall, ToolRouting
from state.sections import Access, Content, Context
from tools.catalogue.catalogue import Catalogue
from tools.palette.candidates import PaletteRequest
from tools.palette.choice import choose_palette

REQUEST = "Read the file README.md and tell me what it is about."


@dataclass(frozen=True)
class Trial:
    """One decision that a model was asked for."""

    answers: tuple[TimedAnswer, ...]
    """One, or two where the first was not usable."""
    confidence: ConfidenceSource | None
    """None where no answer came far enough to tell."""
    problem: str = ""
    """Why no answer is usable; empty where one is."""


@dataclass(frozen=True)
class ProbeResult:
    """How a model did at its tasks."""

    review: Trial
    selection: Trial
    only_validated: tuple[str, ...]
    """Tools of the selection whose schema nothing held the model to."""


async def probe_model(model: Model, catalogue: Catalogue, context: RoutingContext) -> ProbeResult:
    """Ask the model for a review and a selection over a palette of these tools, of which there is at least one.

    Raises:
        DecisionError: it cannot be asked. An answer that is not usable is no error.
    """
    packet = await asyncio.to_thread(_packet, catalogue, context)
    # The review first: what a model or its server prepares once must not count against the speed of the selection.
    review = await _trial(model, lambda source: LanguageReviewer(source).review(packet, catalogue, context))
    selection = await _trial(model, lambda source: LanguageSelector(source).select(packet, catalogue, context))
    tools = [catalogue[entry.tool_name] for entry in packet.context.palette]
    widened = selection.answers[-1].answer.widened
    return ProbeResult(review, selection, tuple(tool_of(part, tools) for part in widened))


async def _trial(model: Model, decide: Callable[[ModelSource], Awaitable[Decision]]) -> Trial:
    watched = WatchedModel(model)

    async def source() -> Model:
        return watched

    try:
        decision = await decide(source)
    except DecisionError as error:
        if watched.unanswered:
            raise
        last = watched.answers[-1].answer
        return Trial(
            tuple(watched.answers),
            ConfidenceSource.MEASURED if last.choices else None,
            f"the answer was cut off at {last.usage.output_tokens} tokens" if last.cut_off else str(error),
        )
    return Trial(tuple(watched.answers), decision.confidence_source)


def _packet(catalogue: Catalogue, context: RoutingContext) -> CognitionPacket:
    palette = choose_palette(
        PaletteRequest(REQUEST, Access.MIXED, context.palette_size, context.palette_token_budget), catalogue
    ).entries
    best = ToolCall(
        tool_name=palette[0].tool_name, risk=palette[0].risk, selection_reasoning="it fits the request best"
    )
    return CognitionPacket(
        content=Content(original_prompt=REQUEST),
        context=Context(palette=palette),
        tool_routing=ToolRouting(calls=(best,)),
    )
