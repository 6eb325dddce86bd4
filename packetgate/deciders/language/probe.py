"""Trying a model out: the time until it is ready, then each stage as in a turn. Nothing of what it selects runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, TypeVar, cast

from packetgate.deciders.language.answer import respond_by_model
from packetgate.deciders.language.decisions import DecisionSource, review_by_decisions
from packetgate.deciders.language.forms import tool_of
from packetgate.deciders.language.review import review_by_model
from packetgate.deciders.language.selection import select_by_model
from packetgate.deciders.protocols import CallReview, Decision, Selection
from packetgate.models.calling import CallAnswer, Odds
from packetgate.models.endpoint import Role
from packetgate.models.model import FormAnswer, Model
from packetgate.models.pool import ModelPool
from packetgate.models.source import ModelSource
from packetgate.models.thoughts import ended_in_thought
from packetgate.state.base import ConfidenceSource, TokenUsage
from packetgate.state.context import RoutingContext
from packetgate.state.errors import DecisionError
from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ToolCall, ToolRouting
from packetgate.state.sections import Access, Content, Context
from packetgate.tools.catalogue.catalogue import Catalogue
from packetgate.tools.palette.candidates import PaletteRequest
from packetgate.tools.palette.choice import choose_palette

T = TypeVar("T", FormAnswer, CallAnswer, Odds)

REQUEST = "Read the file README.md and tell me what it is about."


@dataclass(frozen=True)
class TimedAnswer:
    """An answer, and the seconds it took from the request on."""

    answer: FormAnswer | CallAnswer | Odds
    seconds: float

    @property
    def evaluated(self) -> int:
        """Tokens of the prompt that the model did not know from an earlier one."""
        return self.answer.usage.input_tokens - self.answer.usage.cached_tokens

    @property
    def reading_speed(self) -> float | None:
        """Prompt tokens evaluated per second; None where reading and writing cannot be told apart."""
        timing = self.answer.timing
        return _per_second(self.evaluated, timing.reading_s) if timing else None

    @property
    def writing_speed(self) -> float | None:
        """Answer tokens per second, over the whole request where the reading cannot be left out; None: not counted."""
        timing = self.answer.timing
        return _per_second(self.answer.usage.output_tokens, timing.writing_s if timing else self.seconds)


class WatchedModel:
    """A model whose answers are kept, each with its time; all else is the model's own."""

    def __init__(self, model: Model) -> None:
        self.answers: list[TimedAnswer] = []
        self.unanswered = 0
        """How often it could not be asked since it last answered."""
        self._model = model

    def __getattr__(self, name: str) -> Any:
        """Return the model's own attribute, or one that times its answer."""
        found = getattr(self._model, name)
        return partial(self._timed, found) if name in {"answer", "call", "odds"} else found

    async def _timed(self, ask: Callable[..., Awaitable[T]], *args: Any, **given: Any) -> T:
        begun = perf_counter()
        self.unanswered += 1
        answer = await ask(*args, **given)
        self.unanswered = 0
        self.answers.append(TimedAnswer(answer, perf_counter() - begun))
        return answer


@dataclass(frozen=True)
class Trial:
    """One decision that a model was asked for."""

    answers: tuple[TimedAnswer, ...]
    """One, or two where the first was not usable, and more where thoughts needed more room; none of the answer's.

    A model that is offered tools may be asked again whether or not it was: to hold it to a call, or about each call.
    """
    usage: TokenUsage
    seconds: float
    """The time of the whole stage."""
    confidence: ConfidenceSource | None
    """None where no answer came far enough to tell."""
    problem: str = ""
    """Why no answer is usable; empty where one is."""
    chose: str = ""
    """Of a selection that is usable, its action."""

    @property
    def tries(self) -> int:
        """How many answers it took until one was usable."""
        asked = (one.answer for one in self.answers)
        return sum(isinstance(one, FormAnswer) or one.held_by == "tool_call" for one in asked) or 1


@dataclass(frozen=True)
class ProbeResult:
    """How a model did at its tasks."""

    selection: Trial
    review: Trial
    answer: Trial
    only_validated: tuple[str, ...]
    """Tools of the selection whose schema nothing held the model to."""

    @property
    def stages(self) -> dict[str, Trial]:
        """Each stage's trial, in their order."""
        return {"selection": self.selection, "review": self.review, "answer": self.answer}


async def load(pool: ModelPool, role: Role) -> tuple[Model, float] | None:
    """Return a role's model and the seconds until it was loaded; None where there is none, and reflexes play the role.

    Raises:
        ModelError: it is not there, or cannot be loaded.
    """
    begun = perf_counter()
    await pool.check(role)
    model = await pool.get(role)
    return (model, perf_counter() - begun) if model else None


async def probe_model(model: Model, catalogue: Catalogue, context: RoutingContext) -> ProbeResult:
    """Ask the model at each stage, over a palette of these tools, of which there is at least one.

    Raises:
        DecisionError: it cannot be asked. An answer that is not usable is no error.
    """
    packet = await asyncio.to_thread(_packet, catalogue, context)
    # What a model or its server prepares once counts against the first stage, not against the speed of the selection.
    answer = await _trial(model, lambda source: respond_by_model(source, packet, catalogue, context))
    selection = await _trial(model, lambda source: select_by_model(source, packet, catalogue, context))
    review = await _trial(model, lambda source: review_by_model(source, packet, catalogue, context))
    tools = [catalogue[entry.tool_name] for entry in packet.context.palette]
    widened = selection.answers[-1].answer.widened
    if isinstance(selection.answers[-1].answer, FormAnswer):
        widened = tuple(tool_of(part, tools) for part in widened)
    return ProbeResult(selection, review, answer, widened)


async def probe_reviewer(
    source: DecisionSource, catalogue: Catalogue, context: RoutingContext
) -> tuple[str, CallReview, float]:
    """Have a decision endpoint review a call that the request plainly asks for.

    Returns the tool's name, the judgement, and the seconds that it took.

    Raises:
        DecisionError: it cannot be asked, or tells no probability.
    """
    packet, begun = await asyncio.to_thread(_packet, catalogue, context), perf_counter()
    review = await review_by_decisions(source, packet, catalogue, context)
    return packet.routing.calls[0].tool_name, review.reviews[0], perf_counter() - begun


async def _trial(model: Model, decide: Callable[[ModelSource], Awaitable[Decision]]) -> Trial:
    watched = WatchedModel(model)

    async def source() -> Model:
        return cast("Model", watched)

    begun = perf_counter()
    try:
        decision = await decide(source)
    except DecisionError as error:
        if watched.unanswered or (not watched.answers and not error.usage.output_tokens):
            raise
        last = watched.answers[-1].answer if watched.answers else None
        problem = str(error)
        if last and last.cut_off and not ended_in_thought(last):
            problem = f"the answer was cut off at {last.usage.output_tokens} tokens"
        confidence = ConfidenceSource.MEASURED if last and last.measured else None
        return Trial(tuple(watched.answers), error.usage, perf_counter() - begun, confidence, problem)
    chose = decision.action if isinstance(decision, Selection) else ""
    return Trial(
        tuple(watched.answers), decision.usage, perf_counter() - begun, decision.confidence_source, chose=chose
    )


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


def _per_second(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if tokens > 0 and seconds > 0 else None
