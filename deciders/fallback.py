"""Reflexes standing in for a model that could not decide. The decision says so; nothing is guessed from its text.

There is no such stand-in for the review: a review that fails counts as 0.0, and the gate stays closed.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from deciders.protocols import Answer, Decision, IntentDecision, IntentDetector, Responder, Selection, ToolSelector
from state.context import RoutingContext
from state.errors import DecisionError
from state.packet import CognitionPacket
from tools.catalogue.catalogue import Catalogue
from tools.catalogue.toolbox import Toolbox

D = TypeVar("D", bound=Decision)
P = TypeVar("P", IntentDetector, ToolSelector, Responder)
T = TypeVar("T", Catalogue, Toolbox)
Decide = Callable[[CognitionPacket, T, RoutingContext], Awaitable[D]]


async def _first_able(
    model: Decide[T, D], reflex: Decide[T, D], packet: CognitionPacket, tools: T, context: RoutingContext
) -> D:
    try:
        return await model(packet, tools, context)
    except DecisionError as error:
        decision = await reflex(packet, tools, context)
        return decision.in_place_of(error)


@dataclass(frozen=True)
class _Fallback(Generic[P]):
    model: P
    reflex: P


class FallbackIntent(_Fallback[IntentDetector]):
    """Detects intent by model, by reflex when that fails."""

    async def detect(self, packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
        """Decide, by reflex if need be."""
        return await _first_able(self.model.detect, self.reflex.detect, packet, toolbox, context)


class FallbackSelector(_Fallback[ToolSelector]):
    """Selects by model, by reflex when that fails."""

    async def select(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
        """Decide, by reflex if need be."""
        return await _first_able(self.model.select, self.reflex.select, packet, catalogue, context)


class FallbackResponder(_Fallback[Responder]):
    """Answers by model, by reflex when that fails."""

    async def respond(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Answer:
        """Answer, by reflex if need be."""
        return await _first_able(self.model.respond, self.reflex.respond, packet, catalogue, context)
