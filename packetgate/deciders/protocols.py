"""The types of the stages' decisions, and of the functions that make them."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar

from pydantic import ConfigDict, JsonValue

from packetgate.deciders.replies import ReplyReader
from packetgate.gate.confidence import CallReview
from packetgate.models.pool import ModelSource
from packetgate.state.base import Confidence, ConfidenceSource, Section, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, NotAskedError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative, Correction, ToolCall
from packetgate.state.sections import Access, DecidedBy, Reflection, StageError
from packetgate.tools.calibration import Curve, curve_name
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.checks.checking import CheckedCall


class StageDecision(Section):
    """Fields that the decisions of all stages share."""

    model_config = ConfigDict(extra="forbid")

    confidence: Confidence | None = None  # probability that the decision is right; None if unknown
    confidence_source: ConfidenceSource = ConfidenceSource.RULE
    reasoning: str = ""
    decided_by: DecidedBy = "model"  # also for deciders of your own
    is_fallback: bool = False  # whether `reflex` decided in place of a model
    fallback_reason: str = ""
    usage: TokenUsage = TokenUsage()

    def as_fallback(self, error: DecisionError) -> Self:
        """Return the decision, marked as the fallback after a model's error."""
        reason = "" if isinstance(error, NotAskedError) else str(error)  # the turn already reports the error
        return self.changed(is_fallback=True, fallback_reason=reason, usage=self.usage + error.usage)

    def errors(self, stage: str) -> tuple[StageError, ...]:
        """Return the error that caused the fallback, for the packet."""
        return (StageError(stage=stage, message=self.fallback_reason),) if self.fallback_reason else ()

    def reflection(self, stage: str, summary: str) -> Reflection:
        """Return the entry for the packet's reflection log."""
        return Reflection(
            step=stage,
            summary=summary,
            confidence=self.confidence,
            confidence_source=self.confidence_source,
            decided_by=self.decided_by,
            is_fallback=self.is_fallback,
        )


Tools = TypeVar("Tools", Catalogue, Toolbox)
Decision = TypeVar("Decision", bound=StageDecision)
Decider = Callable[[CognitionPacket, Tools, RoutingContext], Awaitable[Decision]]


class IntentDecision(StageDecision):
    """Whether the next step of the request needs a tool."""

    needs_tool: bool
    user_intent: str
    access: Access


class SelectedCall(Section):
    """A selected call before validation."""

    model_config = ConfigDict(extra="forbid")

    tool_name: str
    params: dict[str, JsonValue] = {}
    reasoning: str = ""
    confidence: Confidence | None = None  # measured for the tool's name; None: use the selection's confidence
    evidence: dict[str, float] = {}  # from the probabilities of its tokens; empty if they were not measured
    checked: CheckedCall | None = None  # validation result, if the decider already validated the call


class Selection(StageDecision):
    """The selected calls, or another action: answer, ask the user, or describe tools."""

    action: Literal["call", "none", "clarify", "describe"]
    confidence: Confidence
    complete: bool | None = None  # for `call`: whether no further calls are needed; None if unknown
    needs_tool: bool = True  # for `none`: whether the request needs a tool, and none fits
    calls: tuple[SelectedCall, ...] = ()
    tool_names: tuple[str, ...] = ()  # for `describe`: the tools, categories or servers
    text: str = ""  # for `none`: the answer, if the selecting model wrote it
    message_id: str | None = None  # id of the message that streamed the answer
    question: str = ""  # for `clarify`
    asked_argument: tuple[str, ...] = ()  # for `clarify`: tool and parameter, if the question asks for one argument
    alternatives: tuple[Alternative, ...] = ()
    corrections: tuple[Correction, ...] = ()
    offered_tools: tuple[str, ...] = ()  # tools whose parameters the model was shown, in the order of the prompt
    call_probability: float | None = None  # measured probability that the model calls a tool

    @classmethod
    def of_certain(cls, call: SelectedCall) -> "Selection":
        """Return the selection of the only call that the request asks for."""
        return cls(
            action="call", calls=(call,), complete=True, confidence=1.0, reasoning=call.reasoning, decided_by="reflex"
        )

    def replacing(self, model_selection: "Selection") -> "Selection":
        """Return this selection with the model's calls as alternatives, and with the model's corrections and usage.

        With other calls than the model's, it is marked as a fallback, so that answer and trace name who selected.
        """
        own, written = ([(call.tool_name, call.params) for call in one.calls] for one in (self, model_selection))
        alternatives = tuple(
            Alternative(tool_name=call.tool_name, params=call.params, reason="the model selected this call")
            for call in model_selection.calls
        )
        return self.changed(
            alternatives=(*alternatives, *self.alternatives)[:5],
            corrections=model_selection.corrections,
            reasoning=f"{self.reasoning}; more likely right than the model's selection",
            is_fallback=own != written,
            call_probability=model_selection.call_probability,
            offered_tools=model_selection.offered_tools,
            usage=model_selection.usage,
        )

    def with_calls(self, calls: Sequence[SelectedCall]) -> "Selection":
        """Return the selection reduced to `calls`; without calls, its action becomes `none`."""
        if not calls and self.action == "call":
            return self.changed(action="none", calls=(), complete=None)
        return self.changed(calls=tuple(calls))


class Review(StageDecision):
    """The judgements on the calls of a pass."""

    reviews: tuple[CallReview, ...]

    @classmethod
    def approving(cls, calls: Sequence[ToolCall], reason: str) -> "Review":
        """Return a review that approves calls without judging them."""
        reviews = tuple(CallReview.unjudged(call, reason) for call in calls)
        return cls(reviews=reviews, decided_by="reflex", confidence_source=ConfidenceSource.UNJUDGED)

    def calibrated(self, curves: Mapping[str, Curve]) -> "Review":
        """Return the review with confidences calibrated by the user's answers or the model's evaluation."""
        judgements = []
        for judgement in self.reviews:
            curve = curves.get(curve_name(self.decided_by, judgement.confidence_source))
            judgements.append(judgement.with_calibrated(curve.at(judgement.confidence)) if curve else judgement)
        return self.changed(reviews=tuple(judgements))

    def for_call(self, call: ToolCall) -> CallReview:
        """Return the judgement on a call; without one, the call is not approved and has confidence 0.0."""
        found = (review for review in self.reviews if review.call_id == call.call_id)
        return next(found, None) or CallReview.failed(call, "the review failed")


class Answer(StageDecision):
    """The answer for the user, as plain text and as Markdown."""

    text: str
    markdown: str = ""  # the answer in Markdown, if `text` is plain text
    appendix: str = ""  # Markdown that is shown below the model's answer
    message_id: str | None = None  # id of the message that streamed the answer


IntentDetector = Decider[Toolbox, IntentDecision]  # takes the toolbox, so that small talk does not wait for servers
ToolSelector = Decider[Catalogue, Selection]
Reviewer = Decider[Catalogue, Review]
Responder = Decider[Catalogue, Answer]
ModelWarmer = Callable[[Toolbox, RoutingContext], Coroutine[Any, Any, None]]  # prepares models for the first turn
ModelDigestSource = Callable[[], Awaitable[str | None]]  # digest of the model of both roles; None if they differ


@dataclass(frozen=True)
class Deciders:
    """A decider for each stage, and their models."""

    intent: IntentDetector
    selector: ToolSelector
    reviewer: Reviewer
    responder: Responder
    replies: ReplyReader = field(default_factory=ReplyReader)  # classifies the user's replies to a question
    lite: ModelSource | None = None  # the selecting model; None for reflex
    warm: ModelWarmer | None = None
    model_digest: ModelDigestSource | None = None
