"""Deciders with scripted decisions that record their calls."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from packetgate.deciders.choosing import reflex_deciders
from packetgate.deciders.fallback import respond_plainly
from packetgate.deciders.protocols import (
    Answer,
    Deciders,
    IntentDecision,
    IntentDetector,
    Responder,
    Review,
    Reviewer,
    SelectedCall,
    Selection,
)
from packetgate.gate.confidence import CallReview
from packetgate.state.context import RoutingContext
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall
from packetgate.state.sections import Access
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox


def call(tool_name: str, **params: Any) -> Selection:
    """Return a selection of one call."""
    return calls(wanted(tool_name, **params))


def wanted(tool_name: str, **params: Any) -> SelectedCall:
    """Return a selected call."""
    return SelectedCall(tool_name=tool_name, params=params)


def calls(*each: SelectedCall) -> Selection:
    """Return a selection of several calls."""
    return Selection(action="call", calls=each, confidence=0.8, decided_by="model")


def clarify(question: str) -> Selection:
    """Return a selection that asks the user a question."""
    return Selection(action="clarify", question=question, confidence=0.8, decided_by="model")


def describe(*names: str) -> Selection:
    """Return a selection that requests full descriptions."""
    return Selection(action="describe", tool_names=names, confidence=0.8, decided_by="model")


def none(reasoning: str = "") -> Selection:
    """Return a selection without a call."""
    return Selection(action="none", reasoning=reasoning, confidence=0.8, decided_by="model")


@dataclass
class ScriptedSelector:
    """Returns scripted selections, one per call."""

    selections: list[Selection]
    seen: list[CognitionPacket] = field(default_factory=list)

    async def __call__(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Selection:
        self.seen.append(packet)
        return self.selections.pop(0)


@dataclass
class IntentWhileSelecting:
    """Decides that a tool is needed while the selector has scripted selections."""

    selector: ScriptedSelector
    access: Access = Access.MIXED

    async def __call__(self, packet: CognitionPacket, toolbox: Toolbox, context: RoutingContext) -> IntentDecision:
        return IntentDecision(
            needs_tool=bool(self.selector.selections),
            user_intent=packet.content.original_prompt,
            access=self.access,
            confidence=0.9,
            decided_by="model",
        )


Judge = Callable[[ToolCall], CallReview | None]


def approving(confidence: float, *, approved: bool = True) -> Judge:
    """Return a judge that gives every call the same review."""
    return lambda call: CallReview(call_id=call.call_id, approved=approved, confidence=confidence)


@dataclass
class ScriptedReviewer:
    """Judges each call by a function. If the function returns None, the call gets no review."""

    judge: Judge
    seen: list[CognitionPacket] = field(default_factory=list)

    async def __call__(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Review:
        self.seen.append(packet)
        judged = [self.judge(one) for one in packet.routing.calls]
        return Review(
            reviews=tuple(one for one in judged if one is not None), confidence=0.5, reasoning="", decided_by="model"
        )


@dataclass
class ScriptedResponder:
    """Answers with a text, like a model."""

    text: str

    async def __call__(self, packet: CognitionPacket, catalogue: Catalogue, context: RoutingContext) -> Answer:
        return Answer(text=self.text, confidence=0.8, decided_by="model")


def scripted(
    *selections: Selection,
    reviewer: Reviewer | None = None,
    responder: Responder | None = None,
    intent: IntentDetector | None = None,
) -> Deciders:
    """Return deciders that make these selections, approve every call, and answer without a model."""
    selector = ScriptedSelector([*selections])
    return Deciders(
        intent=intent or IntentWhileSelecting(selector),
        selector=selector,
        reviewer=reviewer or ScriptedReviewer(approving(0.9)),
        responder=responder or respond_plainly,
        replies=reflex_deciders().replies,
    )
