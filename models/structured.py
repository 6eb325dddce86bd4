"""The one seam for structured answers: messages and a form in, a validated object and its provenance out."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, ValidationError

from models.choices import Measured
from models.decoding.decode import decode_json
from models.forms import AnswerForm
from models.model import FormAnswer, Model
from prompts.rendering import render
from state.base import TokenUsage
from state.errors import DecisionError

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class Structured(Generic[T]):
    """A model's answer as an object, and how it came about."""

    value: T
    usage: TokenUsage
    """Over both rounds."""
    choices: tuple[Measured, ...] = ()
    """What could be measured of the form's choices, in the order they were written."""
    widened: tuple[str, ...] = ()
    """Parts of the form that only validation held."""

    def probability(self, *path: str | int) -> float | None:
        """Return the probability of what was chosen at this place; None where it was not measured."""
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
    """Ask for an object of `schema` in `form`; tell the model once what was wrong with its answer.

    Args:
        validate: returns an objection to a value that fits the schema, or None; runs in a thread.

    Raises:
        DecisionError: the second answer is no better, or the model cannot be asked.
    """
    given = {"temperature": temperature, "max_tokens": max_tokens, "top_p": top_p}
    sampling: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    first = await model.answer(messages, form, sampling=sampling)
    try:
        return await asyncio.to_thread(_read, first, schema, validate, first.usage)
    except DecisionError as error:
        problem = str(error)
    sendable = first.text.encode(errors="replace").decode()  # a server may send half a surrogate pair
    again = [*messages, AIMessage(sendable), HumanMessage(render("repair", problem=problem))]
    second = await model.answer(again, form, sampling=sampling)
    usage = first.usage + second.usage
    try:
        return await asyncio.to_thread(_read, second, schema, validate, usage)
    except DecisionError as error:
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
