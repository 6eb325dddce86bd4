"""Trying a model out: the time until it is ready, then a review and a selection as in a turn. Nothing of them runs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from langchain_core.messages import BaseMessage

from deciders.language.forms import tool_of
from deciders.language.review import review_by_model
from deciders.language.selection import select_by_model
from deciders.protocols import Decision
from models.endpoint import Role
from models.forms import AnswerForm
from models.model import FormAnswer, Model, ModelSource
from models.pool import ModelPool
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
class TimedAnswer:
    """An answer, and the seconds it took from the request on."""

    answer: FormAnswer
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


class WatchedModel(Model):
    """A model whose answers are kept, each with its time."""

    def __init__(self, model: Model) -> None:
        super().__init__(model.chat)
        self.answers: list[TimedAnswer] = []
        self.unanswered = 0
        """How often it could not be asked."""
        self._model = model

    async def fits(self, messages: Sequence[BaseMessage], max_tokens: int) -> bool:
        """Whether the model's context takes this.

        Raises:
            DecisionError: it cannot be asked.
        """
        return await self._model.fits(messages, max_tokens)

    async def answer(
        self, messages: Sequence[BaseMessage], form: AnswerForm, *, sampling: dict[str, Any]
    ) -> FormAnswer:
        """Ask the model.

        Raises:
            DecisionError: it cannot be asked.
        """
        begun = perf_counter()
        self.unanswered += 1
        answer = await self._model.answer(messages, form, sampling=sampling)
        self.unanswered -= 1
        self.answers.append(TimedAnswer(answer, perf_counter() - begun))
        return answer


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
    """Ask the model for a review and a selection over a palette of these tools, of which there is at least one.

    Raises:
        DecisionError: it cannot be asked. An answer that is not usable is no error.
    """
    packet = await asyncio.to_thread(_packet, catalogue, context)
    # The review first: what a model or its server prepares once must not count against the speed of the selection.
    review = await _trial(model, lambda source: review_by_model(source, packet, catalogue, context))
    selection = await _trial(model, lambda source: select_by_model(source, packet, catalogue, context))
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


def _per_second(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if tokens > 0 and seconds > 0 else None
