"""The decision of each stage, and the functions that decide."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeVar

from pydantic import JsonValue

from packetgate.models.source import ModelSource, NamedModel
from packetgate.state.base import Confidence, ConfidenceSource, Section, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, NotAskedError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative, Correction, ToolCall
from packetgate.state.sections import Access, DecidedBy, Reflection, StageError
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.checks.checking import CheckedCall


class StageDecision(Section):
    """Fields that the decisions of all stages share."""

    confidence: Confidence | None = None  # probability that the decision is right; None if unknown
    confidence_source: ConfidenceSource = ConfidenceSource.RULE
    reasoning: str = ""
    decided_by: DecidedBy = "model"  # custom deciders count as models
    is_fallback: bool = False  # whether `reflex` decided in place of a model
    fallback_reason: str = ""
    usage: TokenUsage = TokenUsage()

    def as_fallback(self, error: DecisionError) -> Self:
        """Return the decision, marked as the fallback for a model's error."""
        reason = "" if isinstance(error, NotAskedError) else str(error)  # already reported in this turn
        return self.changed(is_fallback=True, fallback_reason=reason, usage=self.usage + error.usage)

    def errors(self, stage: str) -> tuple[StageError, ...]:
        """Return the model's error for the packet's record."""
        return (StageError(stage=stage, message=self.fallback_reason),) if self.fallback_reason else ()

    def reflection(self, stage: str, summary: str) -> Reflection:
        """Return the decision's line of the packet's log."""
        return Reflection(
            step=stage,
            summary=summary,
            confidence=self.confidence,
            confidence_source=self.confidence_source,
            decided_by=self.decided_by,
            is_fallback=self.is_fallback,
        )


T = TypeVar("T", Catalogue, Toolbox)
D = TypeVar("D", bound=StageDecision)
Decider = Callable[[CognitionPacket, T, RoutingContext], Awaitable[D]]  # decides at one stage


class IntentDecision(StageDecision):
    """Whether the request needs a tool, or another tool."""

    needs_tool: bool
    user_intent: str
    access: Access


class SelectedCall(Section):
    """A selected call before validation."""

    tool_name: str
    params: dict[str, JsonValue] = {}
    reasoning: str = ""
    confidence: Confidence | None = None  # measured, of the tool's name; None: the selection's confidence counts
    evidence: dict[str, float] = {}  # log probabilities of its tokens, if the model called natively
    checked: CheckedCall | None = None  # validation result, if the decider already validated the call


class Selection(StageDecision):
    """Calls to make, or what else to do."""

    action: Literal["call", "none", "clarify", "describe"]
    confidence: Confidence
    complete: bool | None = None  # for `call`: whether no further calls are needed; None if unknown
    needs_tool: bool = True  # for `none`: whether the request needs a tool that is missing
    calls: tuple[SelectedCall, ...] = ()
    tool_names: tuple[str, ...] = ()  # for `describe`: the tools, categories or servers
    text: str = ""  # for `none`: the answer, if the selecting model gave it
    message_id: str | None = None  # id of the message that streamed the answer
    question: str = ""  # for `clarify`
    asks_for: tuple[str, ...] = ()  # for `clarify`: tool and parameter, if it asks for one argument
    alternatives: tuple[Alternative, ...] = ()
    corrections: tuple[Correction, ...] = ()
    call_probability: float | None = None  # measured probability that the model calls instead of answering

    def instead_of(self, chosen: "Selection") -> "Selection":
        """Return this selection in place of a model's less likely one."""
        others = tuple(
            Alternative(tool_name=call.tool_name, params=call.params, reason="the model chose it")
            for call in chosen.calls
        )
        return self.changed(
            alternatives=(*others, *self.alternatives)[:5],
            corrections=chosen.corrections,
            reasoning=f"{self.reasoning}; more likely right than the model's choice",
            call_probability=chosen.call_probability,
            usage=chosen.usage,
        )

    def with_calls(self, calls: Sequence[SelectedCall]) -> "Selection":
        """Return the selection reduced to `calls`; without calls, its action becomes `none`."""
        if not calls and self.action == "call":
            return self.changed(action="none", calls=(), complete=None)
        return self.changed(calls=tuple(calls))


class CallReview(Section):
    """The judgement on one call."""

    call_id: str
    approved: bool
    confidence: Confidence
    confidence_source: ConfidenceSource = ConfidenceSource.RULE
    score: Confidence | None = None  # the confidence before calibration; None without one
    score_source: ConfidenceSource | None = None
    evidence: dict[str, float] = {}
    reasoning: str = ""

    @property
    def stated(self) -> tuple[Confidence, ConfidenceSource]:
        """Confidence and source before calibration."""
        if self.score is None or self.score_source is None:
            return self.confidence, self.confidence_source
        return self.score, self.score_source

    def calibrated(self, confidence: Confidence) -> "CallReview":
        """Return the judgement with a calibrated confidence."""
        return self.changed(
            confidence=confidence,
            confidence_source=ConfidenceSource.CALIBRATED,
            score=self.confidence,
            score_source=self.confidence_source,
        )


class Review(StageDecision):
    """The judgements on a pass's calls. A call without a judgement is not approved and has confidence 0.0."""

    reviews: tuple[CallReview, ...]

    @classmethod
    def approving(cls, calls: Sequence[ToolCall], why: str) -> "Review":
        """Return a review that approves calls without judging them."""
        source = ConfidenceSource.UNJUDGED
        reviews = tuple(
            CallReview(call_id=call.call_id, approved=True, confidence=1.0, confidence_source=source, reasoning=why)
            for call in calls
        )
        return cls(reviews=reviews, decided_by="reflex", confidence_source=source)

    def of(self, call_id: str) -> CallReview:
        """Return the judgement on a call."""
        failed = CallReview(call_id=call_id, approved=False, confidence=0.0, reasoning="the review failed")
        return next((one for one in self.reviews if one.call_id == call_id), failed)


class Answer(StageDecision):
    """The answer for the user, as plain text and as Markdown."""

    text: str
    markdown: str = ""  # the same in Markdown, if `text` is plain
    below: str = ""  # markdown shown below the model's words
    message_id: str | None = None  # id of the message that streamed it


IntentDetector = Decider[Toolbox, IntentDecision]  # with the toolbox, so that small talk does not wait for servers
ToolSelector = Decider[Catalogue, Selection]  # selects calls from the packet's palette
Reviewer = Decider[Catalogue, Review]  # judges each of the packet's calls before it may run
Responder = Decider[Catalogue, Answer]  # writes the answer from the packet alone
ModelDigestSource = Callable[
    [], Awaitable[str | None]
]  # a digest of the model's content; None unless both roles share it


@dataclass(frozen=True)
class Deciders:
    """A decider for each stage, and their models."""

    intent: IntentDetector
    selector: ToolSelector
    reviewer: Reviewer
    responder: Responder
    lite: ModelSource | None = None  # the selecting model; None for reflex
    prime: ModelSource | None = None  # the reviewing and answering model; None for reflex
    reviewer_source: Callable[[], Awaitable[NamedModel]] | None = None  # a reviewer in place of the prime model
    model_digest: ModelDigestSource | None = None  # of the model that selects and reviews
