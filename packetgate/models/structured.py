"""Structured answers: messages and a form in, a validated object and its probabilities out."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, ValidationError

from packetgate.models.choices import Measured
from packetgate.models.decoding.native_calls import decode_json
from packetgate.models.model import FormAnswer, Model
from packetgate.models.schemas import AnswerForm
from packetgate.models.thoughts import Thoughts, cut_off_in_thought, ended_in_thought, with_room
from packetgate.prompts.rendering import render
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError

T = TypeVar("T", bound=BaseModel)

LONGER = 2
"""Factor for the length of the second answer where the first was cut off."""


@dataclass(frozen=True)
class Structured(Generic[T]):
    """A validated answer."""

    value: T
    usage: TokenUsage
    """Over both rounds."""
    choices: tuple[Measured, ...] = ()
    """In the order written."""
    widened: tuple[str, ...] = ()
    """Parts of the form that only validation checked."""

    def probability(self, *path: str | int) -> float | None:
        """Return the probability of the choice at a path; None: not measured."""
        return next((one.probability for one in self.choices if one.path == path), None)


async def decide(
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[T],
    form: AnswerForm,
    *,
    temperature: float,
    max_tokens: int,
    top_p: float | None = None,
    validate: Callable[[T], str | None] | None = None,
) -> Structured[T]:
    """Ask for an object of `schema` in `form`; on an error, ask once more and quote it.

    Args:
        validate: returns an objection to a valid object, or None; runs in a thread.

    Raises:
        DecisionError: the second answer is invalid too.
    """
    sampling = model.sampling(temperature=temperature, top_p=top_p)
    thoughts = model.thoughts if model.thinks_in_forms else Thoughts(0)

    async def ask(messages: Sequence[BaseMessage], length: int) -> tuple[FormAnswer, TokenUsage]:
        async def answer(most: int) -> FormAnswer:
            limited = sampling | {"max_tokens": most}
            return await model.ask_with_pictures(messages, lambda shown: model.answer(shown, form, sampling=limited))

        return await with_room(thoughts, length, answer)

    first, spent = await ask(messages, max_tokens)
    try:
        return await asyncio.to_thread(_read, first, schema, validate, spent)
    except DecisionError as error:
        problem = str(error)
    if ended_in_thought(first):
        raise cut_off_in_thought(model.label, thoughts, spent)
    sendable = first.text.encode(errors="replace").decode()  # a server may send half a surrogate pair
    again = [*messages, AIMessage(sendable), HumanMessage(render("repair", problem=problem))]
    second, more = await ask(again, max_tokens * (LONGER if first.cut_off else 1))
    usage = spent + more
    try:
        return await asyncio.to_thread(_read, second, schema, validate, usage)
    except DecisionError as error:
        if ended_in_thought(second):
            raise cut_off_in_thought(model.label, thoughts, usage) from error
        problem = f"{model.label} gave no usable {schema.__name__}, asked twice: {error}"
        raise DecisionError(problem, usage) from error


def _read(
    answer: FormAnswer, schema: type[T], validate: Callable[[T], str | None] | None, usage: TokenUsage
) -> Structured[T]:
    try:
        value = schema.model_validate(decode_json(answer.text))
    except ValidationError as error:
        raise DecisionError(_problems(error)) from error
    except DecisionError as error:
        if answer.cut_off:
            raise DecisionError(f"the answer is longer than it may be, so it was cut off: {error}") from error
        raise
    objection = validate(value) if validate else None
    if objection:
        raise DecisionError(objection)
    return Structured(value, usage, answer.choices, answer.widened)


def _problems(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{'.'.join(str(part) for part in detail['loc']) or 'the object'}: {detail['msg']}" for detail in details]
    more = f"; and {len(named) - 5} more" if len(named) > 5 else ""
    return "; ".join(named[:5]) + more
