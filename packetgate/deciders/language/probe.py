"""Try a model at each stage, as in a turn, without running anything."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, TypeVar, cast

from packetgate.deciders.language.answer import respond_by_model
from packetgate.deciders.language.decisions import DecisionSource, review_by_decisions
from packetgate.deciders.language.review import review_by_model
from packetgate.deciders.language.selection import select_by_model, tool_of_part
from packetgate.deciders.protocols import CallReview, Selection, StageDecision
from packetgate.models.calling import CallAnswer, WordProbabilities
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
from packetgate.tools.palette.choice import PaletteRequest, choose_palette

T = TypeVar("T", FormAnswer, CallAnswer, WordProbabilities)
REQUEST = "Read the file README.md and tell me what it is about."


@dataclass(frozen=True)
class TimedAnswer:
    """An answer, and the seconds of its request."""

    answer: FormAnswer | CallAnswer | WordProbabilities
    seconds: float

    @property
    def evaluated(self) -> int:
        """Prompt tokens that were not cached."""
        return self.answer.usage.input_tokens - self.answer.usage.cached_tokens

    @property
    def reading_speed(self) -> float | None:
        """Prompt tokens per second; None if unknown."""
        timing = self.answer.timing
        return _per_second(self.evaluated, timing.reading_s) if timing else None

    @property
    def writing_speed(self) -> float | None:
        """Answer tokens per second, including the reading if that is not measured; None if unknown."""
        timing = self.answer.timing
        return _per_second(self.answer.usage.output_tokens, timing.writing_s if timing else self.seconds)


class TimedModel:
    """A model that records its answers with their times."""

    def __init__(self, model: Model) -> None:
        self.answers: list[TimedAnswer] = []
        self.unanswered = 0
        """Requests since the last answer."""
        self._model = model

    def __getattr__(self, name: str) -> Any:
        """Return the model's attribute; the methods that ask the model are timed."""
        found = getattr(self._model, name)
        return partial(self._timed, found) if name in {"answer", "call", "odds"} else found

    async def _timed(self, ask: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
        begun = perf_counter()
        self.unanswered += 1
        answer = await ask(*args, **options)
        self.unanswered = 0
        self.answers.append(TimedAnswer(answer, perf_counter() - begun))
        return answer


@dataclass(frozen=True)
class Trial:
    """The result of trying a model at one stage."""

    answers: tuple[TimedAnswer, ...]
    usage: TokenUsage
    seconds: float
    confidence: ConfidenceSource | None  # none if no answer got that far
    problem: str = ""  # why no answer is usable
    chose: str = ""  # action of a usable selection

    @property
    def tries(self) -> int:
        """Number of answers until one was usable."""
        answers = (one.answer for one in self.answers)
        return sum(isinstance(one, FormAnswer) or one.held_by == "tool_call" for one in answers) or 1


@dataclass(frozen=True)
class ProbeResult:
    """A trial for each stage."""

    selection: Trial
    review: Trial
    answer: Trial
    only_validated: tuple[str, ...]  # selected tools whose schema could not be enforced

    @property
    def stages(self) -> dict[str, Trial]:
        """The trial of each stage, by the stage's name."""
        return {"selection": self.selection, "review": self.review, "answer": self.answer}


async def load(pool: ModelPool, role: Role) -> tuple[Model, float] | None:
    """Return a role's model and the seconds of loading; None for reflex.

    Raises:
        ModelError: It is missing or cannot be loaded.
    """
    begun = perf_counter()
    await pool.check(role)
    model = await pool.get(role)
    return (model, perf_counter() - begun) if model else None


async def probe_model(model: Model, catalogue: Catalogue, context: RoutingContext) -> ProbeResult:
    """Return a trial of the model at each stage, with a palette of these tools.

    The answer stage runs first, so its time includes preparations.

    Raises:
        DecisionError: The model cannot be asked. An unusable answer is no error.
    """
    packet = await asyncio.to_thread(_packet, catalogue, context)
    answer, selection, review = [
        await _trial(model, partial(stage, packet=packet, catalogue=catalogue, context=context))
        for stage in (respond_by_model, select_by_model, review_by_model)
    ]
    tools = [catalogue[entry.tool_name] for entry in packet.context.palette]
    last = selection.answers[-1].answer
    names = tuple(tool_of_part(part, tools) for part in last.widened) if isinstance(last, FormAnswer) else last.widened
    return ProbeResult(selection, review, answer, names)


async def probe_reviewer(
    source: DecisionSource, catalogue: Catalogue, context: RoutingContext
) -> tuple[str, CallReview, float]:
    """Have a decision model review a plain read, and return (tool, judgement, seconds).

    Raises:
        DecisionError: It cannot be asked, or gives no probability.
    """
    packet, begun = await asyncio.to_thread(_packet, catalogue, context), perf_counter()
    review = await review_by_decisions(source, packet, catalogue, context)
    return packet.routing.calls[0].tool_name, review.reviews[0], perf_counter() - begun


async def _trial(model: Model, decide: Callable[[ModelSource], Awaitable[StageDecision]]) -> Trial:
    timed = TimedModel(model)

    async def source() -> Model:
        return cast("Model", timed)

    begun = perf_counter()
    try:
        decision = await decide(source)
    except DecisionError as error:
        if timed.unanswered or (not timed.answers and not error.usage.output_tokens):
            raise
        last = timed.answers[-1].answer if timed.answers else None
        problem = str(error)
        if last and last.cut_off and not ended_in_thought(last):
            problem = f"the answer was cut off at {last.usage.output_tokens} tokens"
        confidence = ConfidenceSource.MEASURED if last and last.measured else None
        return Trial(tuple(timed.answers), error.usage, perf_counter() - begun, confidence, problem)
    chose = decision.action if isinstance(decision, Selection) else ""
    seconds = perf_counter() - begun
    return Trial(tuple(timed.answers), decision.usage, seconds, decision.confidence_source, chose=chose)


def _packet(catalogue: Catalogue, context: RoutingContext) -> CognitionPacket:
    request = PaletteRequest(REQUEST, Access.MIXED, context.palette_size, context.palette_token_budget)
    palette = choose_palette(request, catalogue).entries
    best = palette[0]
    call = ToolCall(tool_name=best.tool_name, risk=best.risk, selection_reasoning="it fits the request best")
    return CognitionPacket(
        content=Content(original_prompt=REQUEST),
        context=Context(palette=palette),
        tool_routing=ToolRouting(calls=(call,)),
    )


def _per_second(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if tokens > 0 and seconds > 0 else None
