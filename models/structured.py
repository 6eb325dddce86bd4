"""The one seam for structured answers: messages and a schema in, a validated object and its provenance out."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ValidationError

from models.json_decoding import decode_json
from models.transport import model_label, named_errors
from state.errors import DecisionError
from state.sections import TokenUsage

T = TypeVar("T", bound=BaseModel)

ConfidenceSource = Literal["stated"]
"""Where an answer's confidence comes from: `stated` is a number the model wrote itself."""

_HIDDEN: RunnableConfig = {"tags": ["nostream"]}
"""Keeps LangGraph's message stream from showing JSON to the user."""


@dataclass(frozen=True)
class Structured(Generic[T]):
    """A model's answer as an object, and how it came about."""

    value: T
    raw: str
    """The text the value was read from."""
    repaired: bool
    """Whether it took the repair round."""
    usage: TokenUsage
    """Over both rounds."""
    confidence_source: ConfidenceSource = "stated"


async def decide(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    schema: type[T],
    *,
    temperature: float,
    max_tokens: int,
    repair_prompt: Callable[[str], str],
    top_p: float | None = None,
    validate: Callable[[T], str | None] | None = None,
) -> Structured[T]:
    """Ask for an object of `schema`; tell the model once what was wrong with its answer.

    Args:
        repair_prompt: turns a problem into the message that asks for another try.
        validate: returns an objection to a value that fits the schema, or None; runs in a thread.

    Raises:
        DecisionError: the second answer is no better, or the model cannot be asked.
    """
    sampling: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens}
    if top_p is not None:
        sampling["top_p"] = top_p
    first = await ask(model, messages, sampling)
    try:
        value = await asyncio.to_thread(_read, first.text, schema, validate)
        return Structured(value, first.text, repaired=False, usage=usage_of(first))
    except DecisionError as error:
        problem = str(error)
    again = [*messages, AIMessage(first.text), HumanMessage(repair_prompt(problem))]
    second = await ask(model, again, sampling)
    try:
        value = await asyncio.to_thread(_read, second.text, schema, validate)
    except DecisionError as error:
        raise DecisionError(f"{model_label(model)} gave no usable {schema.__name__}, asked twice: {error}") from error
    return Structured(value, second.text, repaired=True, usage=usage_of(first, second))


async def ask(model: BaseChatModel, messages: Sequence[BaseMessage], sampling: dict[str, Any]) -> AIMessage:
    """Ask once, hidden from LangGraph's message stream.

    Raises:
        DecisionError: the model cannot be asked.
    """
    accepted = dict(sampling)
    while True:
        try:
            with named_errors(model):
                answer: BaseMessage = await model.ainvoke(list(messages), _HIDDEN, stream=False, **accepted)
                if not isinstance(answer, AIMessage):  # the endpoint chooses the role
                    raise TypeError(f"a message of type {answer.type}")
                return answer
        except DecisionError as error:  # reasoning models refuse to have their sampling changed
            refused = getattr(error.__cause__, "param", None)
            if refused not in {"temperature", "top_p"} & accepted.keys():
                raise
            del accepted[refused]


def _read(text: str, schema: type[T], validate: Callable[[T], str | None] | None) -> T:
    try:
        value = schema.model_validate(decode_json(text))
    except ValidationError as error:
        raise DecisionError(_problems(error)) from error
    objection = validate(value) if validate else None
    if objection:
        raise DecisionError(objection)
    return value


def _problems(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{'.'.join(str(part) for part in detail['loc']) or 'the object'}: {detail['msg']}" for detail in details]
    more = f"; and {len(named) - 5} more" if len(named) > 5 else ""
    return "; ".join(named[:5]) + more


def usage_of(*answers: AIMessage) -> TokenUsage:
    """Add up what the answers took."""
    known = [answer.usage_metadata for answer in answers if answer.usage_metadata]
    return TokenUsage(
        input_tokens=sum(usage["input_tokens"] for usage in known),
        output_tokens=sum(usage["output_tokens"] for usage in known),
    )
