"""Watching a model at work: how long it takes to be ready, and for every answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from langchain_core.messages import BaseMessage

from models.endpoint import Role
from models.forms import AnswerForm
from models.model import FormAnswer, Model
from models.pool import ModelPool


@dataclass(frozen=True)
class Loaded:
    """A model that is ready to be asked."""

    model: Model
    seconds: float
    """Until it was."""


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


async def load(pool: ModelPool, role: Role) -> Loaded | None:
    """Load a role's model; None: there is none to load, reflexes play the role.

    Raises:
        ModelError: it is not there, or cannot be loaded.
    """
    begun = perf_counter()
    await pool.check(role)
    model = await pool.get(role)
    return Loaded(model, perf_counter() - begun) if model else None


def _per_second(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if tokens > 0 and seconds > 0 else None
