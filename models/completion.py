"""Plain answers: messages in, text out."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from models.structured import ask, usage_of
from models.transport import model_label
from state.errors import DecisionError
from state.sections import TokenUsage


@dataclass(frozen=True)
class Completion:
    """What a model wrote."""

    text: str
    usage: TokenUsage


async def complete(
    model: BaseChatModel, messages: Sequence[BaseMessage], *, temperature: float, max_tokens: int
) -> Completion:
    """Ask for an answer in words.

    Raises:
        DecisionError: the model cannot be asked, or says nothing.
    """
    answer = await ask(model, messages, {"temperature": temperature, "max_tokens": max_tokens})
    if not answer.text.strip():
        raise DecisionError(f"{model_label(model)} said nothing")
    return Completion(answer.text, usage_of(answer))
