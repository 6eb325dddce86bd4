"""What each stage asks of its decider, and what it gets back."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeVar

from pydantic import JsonValue

from packetgate.models.source import ModelSource, Named
from packetgate.state.base import Confidence, ConfidenceSource, Section, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError, NotAskedError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import Alternative, Correction
from packetgate.state.sections import Access, DecidedBy, Reflection, StageError
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.catalogue.toolbox import Toolbox
from packetgate.tools.checks.checking import CheckedCall


class Decision(Section):
    """What all decisions carry."""

    confidence: Confidence | None = None
    """None: nobody judged how likely it is to be right."""
    confidence_source: ConfidenceSource = ConfidenceSource.RULE
    reasoning: str = ""
    decided_by: DecidedBy = "model"
    """A decider of a program's own counts as a model."""
    is_fallback: bool = False
    """True when a model should have decided and reflexes did."""
    fallback_reason: str = ""
    usage: TokenUsage = TokenUsage()

    def in_place_of(self, error: DecisionError) -> Self:
        """Return the decision as one that stands in for a model's; why is told once a turn."""
        why = "" if isinstance(error, NotAskedError) else str(error)
        return self.changed(is_fallback=True, fallback_reason=why, usage=self.usage + error.usage)

    def errors(self, stage: str) -> tuple[StageError, ...]:
        """Return what kept the model from deciding, for the packet's record."""
        return (StageError(stage=stage, message=self.fallback_reason),) if self.fallback_reason else ()

    def reflection(self, stage: str, summary: str) -> Reflection:
        """Return the line of the packet's log that tells of the decision."""
        return Reflection(
            step=stage,
            summary=summary,
            confidence=self.confidence,
            confidence_source=self.confidence_source,
            decided_by=self.decided_by,
            is_fallback=self.is_fallback,
        )


T = TypeVar("T", Catalogue, Toolbox)
D = TypeVar("D", bound=Decision)
Decider = Callable[[CognitionPacket, T, RoutingContext], Awaitable[D]]
"""What decides at one stage."""


class IntentDecision(Decision):
    """Whether the request needs a tool, now that this much is known."""

    needs_tool: bool
    user_intent: str
    access: Access


class WantedCall(Section):
    """A call as the decider wants it."""

    tool_name: str
    params: dict[str, JsonValue] = {}
    reasoning: str = ""
    confidence: Confidence | None = None
    """The measured probability of this tool's name; None: it was not measured, and the selection's own counts."""
    evidence: dict[str, float] = {}
    """What the probabilities of its tokens tell of it, where a model wrote it in its own language."""
    checked: CheckedCall | None = None
    """What the check of it found, where the decider has had it checked, as one does that asks its model once more."""


class Selection(Decision):
    """What to do about the request."""

    action: Literal["call", "none", "clarify", "describe"]
    confidence: Confidence
    complete: bool | None = None
    """For `call`: whether these calls are all that the request takes; None: it was not said."""
    needs_tool: bool = True
    """For `none`: False where the request needs no tool, not even one that is not here."""
    calls: tuple[WantedCall, ...] = ()
    tool_names: tuple[str, ...] = ()
    """For `describe`: whose full description is needed."""
    text: str = ""
    """For `none`: the answer, where the model that chose gave it in the same words."""
    message_id: str | None = None
    """The id of the message that it was streamed as; None when it was not."""
    question: str = ""
    """For `clarify`."""
    asks_for: tuple[str, ...] = ()
    """For `clarify`, where it is one argument that is asked for: the tool and the parameter."""
    alternatives: tuple[Alternative, ...] = ()
    corrections: tuple[Correction, ...] = ()
    """What had to be corrected on the way to this selection."""
    acts: float | None = None
    """Probability that the model calls and does not answer in words; None: it was not measured."""
    only_validated: tuple[str, ...] = ()
    """Tools whose schema no grammar could hold, so that their arguments were only validated."""

    def in_stead_of(self, chosen: "Selection") -> "Selection":
        """Return the selection as one that is likelier to be right than what a model chose."""
        others = tuple(
            Alternative(tool_name=one.tool_name, params=one.params, reason="the model chose it") for one in chosen.calls
        )
        return self.changed(
            alternatives=(*others, *self.alternatives)[:5],
            corrections=chosen.corrections,
            reasoning=f"{self.reasoning}; likelier to be right than what the model chose",
            acts=chosen.acts,
            usage=chosen.usage,
        )

    def with_evidence(self, known: Mapping[str, float]) -> "Selection":
        """Return the selection with more evidence of each call."""
        return self.changed(calls=tuple(one.changed(evidence={**one.evidence, **known}) for one in self.calls))

    def with_calls(self, calls: Sequence[WantedCall]) -> "Selection":
        """Return the selection with these of its calls; with none, where it had any, it is one of no tool."""
        if not calls and self.action == "call":
            return self.changed(action="none", calls=(), complete=None)
        return self.changed(calls=tuple(calls))

    def without_text(self) -> "Selection":
        """Return the selection without an answer: another model gives it."""
        return self.changed(text="")

    def explained(self, reasoning: str) -> "Selection":
        """Return the selection with another reasoning."""
        return self.changed(reasoning=reasoning)


class CallReview(Section):
    """The judgement on one call."""

    call_id: str
    approved: bool
    confidence: Confidence
    confidence_source: ConfidenceSource = ConfidenceSource.RULE
    score: Confidence | None = None
    """The confidence before it was calibrated; None: it was not."""
    score_source: ConfidenceSource | None = None
    evidence: dict[str, float] = {}
    """What it was weighed from."""
    reasoning: str = ""

    @property
    def stated(self) -> tuple[Confidence, ConfidenceSource]:
        """How sure the review itself was, and how that is known."""
        if self.score is None or self.score_source is None:
            return self.confidence, self.confidence_source
        return self.score, self.score_source

    def calibrated(self, confidence: Confidence) -> "CallReview":
        """Return the judgement with the probability that its confidence has come to mean."""
        return self.changed(
            confidence=confidence,
            confidence_source=ConfidenceSource.CALIBRATED,
            score=self.confidence,
            score_source=self.confidence_source,
        )


class Review(Decision):
    """The judgements on a pass's calls. A call without one counts as not approved, at 0.0."""

    reviews: tuple[CallReview, ...]

    def judged(self, reviews: tuple[CallReview, ...]) -> "Review":
        """Return the review with other judgements on its calls."""
        return self.changed(reviews=reviews)

    def of(self, call_id: str) -> CallReview:
        """Return the judgement on a call."""
        unjudged = CallReview(call_id=call_id, approved=False, confidence=0.0, reasoning="the review failed")
        return next((one for one in self.reviews if one.call_id == call_id), unjudged)


class Answer(Decision):
    """What to tell the user."""

    text: str
    markdown: str = ""
    """The same for front ends that render it, where `text` is plain."""
    below: str = ""
    """What is shown below it, in Markdown, and is not the model's."""
    message_id: str | None = None
    """The id of the message it was streamed as; None when it was not."""


IntentDetector = Decider[Toolbox, IntentDecision]
"""Judges whether the request, and on a later pass what is still open of it, needs a tool. Small talk must not wait for
servers."""
ToolSelector = Decider[Catalogue, Selection]
"""Chooses from the packet's palette which tools to call, and with what."""
Reviewer = Decider[Catalogue, Review]
"""Judges each of the packet's calls before it may run."""
Responder = Decider[Catalogue, Answer]
"""Writes the answer from the packet alone."""


KnownAs = Callable[[], Awaitable[str | None]]
"""Says what a model is known by, whatever its file is called; None where it is not one that decides all."""


@dataclass(frozen=True)
class Deciders:
    """One decider a stage, and what they ask."""

    intent: IntentDetector
    selector: ToolSelector
    reviewer: Reviewer
    responder: Responder
    lite: ModelSource | None = None
    """The model behind selection; None: reflexes decide."""
    prime: ModelSource | None = None
    """The model behind review and answer; None: reflexes decide."""
    reviewing: Callable[[], Awaitable[Named]] | None = None
    """What reviews in place of the prime model; None: that does."""
    known_as: KnownAs | None = None
    """Of the model that selects and reviews."""
