"""The tokens of answers, and the limits of thoughts, which come in addition to the limit of the answer."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from langchain_core.messages import AIMessage

from packetgate.models.transport import is_too_long, skip_model
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError

DEFAULT_TOKEN_LIMIT, LOCAL_TOKEN_LIMIT = 8_000, 2_000
"""Thought tokens if no budget is set: before an answer, and before calls of a model in this process."""
_LEAST_TOKEN_LIMIT, _SHRINK = 500, 4
CHARS_PER_TOKEN = 4


class _Answer(Protocol):
    @property
    def usage(self) -> TokenUsage: ...


A = TypeVar("A", bound=_Answer)


class Thoughts:
    """The thinking budget of a model, and whether its earlier answers had thoughts."""

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self.thinks: bool | None = None
        """None: no answer yet."""

    @property
    def token_limit(self) -> int:
        """The maximum number of thought tokens before an answer; 0 if the model does not think."""
        return self.budget if self.budget is not None else 0 if self.thinks is False else DEFAULT_TOKEN_LIMIT

    def record(self, tokens: int) -> None:
        """Record the thought tokens of an answer."""
        self.thinks = tokens > 0 or bool(self.thinks)


def smaller_token_limit(limit: int, error: DecisionError) -> int:
    """Return a smaller thought limit after a server refused the length; raise any other error."""
    if not limit or not is_too_long(error.__cause__):
        raise error
    return limit // _SHRINK if limit > _LEAST_TOKEN_LIMIT else 0


async def ask_with_token_limit(thoughts: Thoughts, length: int, ask: Callable[[int], Awaitable[A]]) -> A:
    """Call `ask` with a token limit for thoughts and answer, and again with a lower limit if the server refuses it.

    Record the thought of the answer.
    """
    limit = thoughts.token_limit
    while True:
        try:
            answer = await ask(length + limit)
        except DecisionError as error:
            limit = smaller_token_limit(limit, error)
        else:
            thoughts.record(answer.usage.thought_tokens)
            return answer


def ended_within_thought(text: str, usage: TokenUsage, *, cut_off: bool) -> bool:
    """Whether an answer was cut off within its thoughts."""
    return cut_off and (2 * usage.thought_tokens > usage.output_tokens or not text.strip())


def cut_off_in_thought(label: str, thoughts: Thoughts, spent: TokenUsage) -> DecisionError:
    """Return the error for a model that thought until it was cut off. The turn does not ask it again."""
    skip_model(label)
    budget = "set thinking_budget or use a larger context"
    if thoughts.budget is not None:
        budget = f"raise thinking_budget, which is {thoughts.budget:,}"
    advice = f"{budget}, or set reasoning_effort=low or enable_thinking=false"
    tokens = f"{spent.output_tokens:,} tokens, " if spent.output_tokens else ""
    return DecisionError(f"{label} was cut off while thinking ({tokens}no answer): {advice}", spent)


def count_thought_tokens(answer: Sequence[AIMessage], output_tokens: int) -> int:
    """Return the thought tokens of an answer or its pieces, as the server counts them or estimated from the text."""
    known = [one.usage_metadata for one in answer if one.usage_metadata]
    counted = sum(usage.get("output_token_details", {}).get("reasoning", 0) for usage in known)
    if counted:
        return counted
    beside = sum(len(one.additional_kwargs.get("reasoning_content") or "") for one in answer)
    text = "".join(one.text for one in answer)
    before, end, _ = text.rpartition("</think>")
    thought = beside + (len(before) if end else len(text) if text.lstrip().startswith("<think>") else 0)
    if not thought:
        return 0
    calls = sum(len(str(one.tool_calls or one.invalid_tool_calls or "")) for one in answer)
    return (
        round(output_tokens * thought / (beside + len(text) + calls)) if output_tokens else thought // CHARS_PER_TOKEN
    )


def usage_of(*answers: AIMessage) -> TokenUsage:
    """Return the token usage of an answer or its pieces."""
    known = [answer.usage_metadata for answer in answers if answer.usage_metadata]
    usage = TokenUsage(
        input_tokens=sum(usage["input_tokens"] for usage in known),
        output_tokens=sum(usage["output_tokens"] for usage in known),
        cached_tokens=sum(usage.get("input_token_details", {}).get("cache_read", 0) for usage in known),
    )
    return usage.changed(thought_tokens=count_thought_tokens(answers, usage.output_tokens))
