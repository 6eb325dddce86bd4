"""Ask for a JSON answer, and return it as a validated object with probabilities."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, ValidationError

from packetgate.models.choices import MeasuredChoice
from packetgate.models.decoding import decode_json
from packetgate.models.model import FormAnswer, Model
from packetgate.models.schemas import AnswerForm
from packetgate.models.thoughts import ask_with_token_limit, cut_off_in_thought, ended_within_thought
from packetgate.prompts.rendering import render
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class StructuredResult(Generic[T]):
    """A validated answer."""

    value: T
    usage: TokenUsage
    """Tokens of both attempts."""
    choices: tuple[MeasuredChoice, ...] = ()
    """The measured choices, in the order of the answer."""

    def probability(self, *path: str | int) -> float | None:
        """Return the probability of the choice at a path; None: not measured."""
        return next((one.probability for one in self.choices if one.path == path), None)


async def structured_answer(
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[T],
    form: AnswerForm,
    *,
    temperature: float,
    max_tokens: int,
    top_p: float | None = None,
    validate: Callable[[T], str | None] | None = None,
) -> StructuredResult[T]:
    """Return an object of `schema` in `form`; after an error, ask once more and quote the error.

    Args:
        validate: checks the object further, in a thread; returns an objection, or None.

    Raises:
        DecisionError: the second answer is invalid too.
    """
    sampling = model.sampling(temperature=temperature, top_p=top_p)
    asked, spent, is_second = [*messages], TokenUsage(), False

    async def ask(most: int) -> FormAnswer:
        return await model.answer(asked, form, sampling=sampling | {"max_tokens": most})

    while True:
        answer = await ask_with_token_limit(model.thoughts, max_tokens, ask)
        model.thoughts.record(answer.usage.thought_tokens)
        spent += answer.usage
        try:
            return await asyncio.to_thread(_read, answer, schema, validate, spent)
        except DecisionError as error:
            if ended_within_thought(answer.text, answer.usage, cut_off=answer.cut_off):
                raise cut_off_in_thought(model.label, model.thoughts, spent) from error
            if is_second:
                problem = f"{model.label} gave no valid {schema.__name__} in two attempts: {error}"
                raise DecisionError(problem, spent) from error
            is_second = True
            sendable = answer.text.encode(errors="replace").decode()  # a server may send half a surrogate pair
            asked += [AIMessage(sendable), HumanMessage(render("repair", problem=str(error)))]
            max_tokens *= 2 if answer.cut_off else 1


def _read(
    answer: FormAnswer, schema: type[T], validate: Callable[[T], str | None] | None, usage: TokenUsage
) -> StructuredResult[T]:
    try:
        value = schema.model_validate(decode_json(answer.text))
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)[:5]
        problems = [f"{'.'.join(map(str, one['loc'])) or 'the object'}: {one['msg']}" for one in details]
        raise DecisionError("; ".join(problems)) from error
    except DecisionError as error:
        if answer.cut_off:
            raise DecisionError(f"the answer was cut off at its length limit: {error}") from error
        raise
    objection = validate(value) if validate else None
    if objection:
        raise DecisionError(objection)
    return StructuredResult(value, usage, answer.choices)
