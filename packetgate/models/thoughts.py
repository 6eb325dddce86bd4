"""Room for thoughts in addition to an answer's own length."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from langchain_core.messages import AIMessage

from packetgate.models.transport import is_too_long
from packetgate.models.turns import stop_asking
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError

UNKNOWN_ROOM, MOST_ROOM, GROWTH = 2_000, 32_000, 4
"""Tokens for thoughts: for an unknown model, and at most; and the growth factor after a cut-off."""
CHARS_A_TOKEN = 4


class Thoughts:
    """The lengths of a model's thoughts, as measured in this process."""

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self.longest: int | None = None
        """Tokens of its longest thought so far; None: no answer yet."""

    @property
    def most(self) -> int:
        """Most tokens for a thought."""
        return MOST_ROOM if self.budget is None else min(MOST_ROOM, self.budget)

    @property
    def room(self) -> int:
        """Tokens for a thought, at first."""
        if self.budget is not None:
            return self.most
        return 0 if self.longest == 0 else min(max(UNKNOWN_ROOM, 2 * (self.longest or 0)), self.most)

    def learn_length(self, tokens: int) -> None:
        """Update the expected length from an answer's thought tokens."""
        self.longest = max(tokens, self.longest or 0)


class LimitedAnswer(Protocol):
    """An answer, in a form or in words."""

    @property
    def text(self) -> str:
        """The text of the answer."""

    @property
    def usage(self) -> TokenUsage:
        """The token usage of the answer."""

    @property
    def cut_off(self) -> bool:
        """Whether the answer reached its length limit."""


class Room:
    """The token limit of a request; refusals and cut-offs change it."""

    def __init__(self, thoughts: Thoughts, length: int) -> None:
        self.spent = TokenUsage()
        """Tokens of all answers."""
        self._thoughts, self._length, self._room, self._written = thoughts, length, thoughts.room, 0

    @property
    def max_tokens(self) -> int:
        """The `max_tokens` of the next request."""
        return self._length + self._room

    def after_refusal(self, error: DecisionError) -> None:
        """Ask for less room if the server refuses so long an answer; otherwise raise the error."""
        if not self._room or not is_too_long(error.__cause__):
            error.usage += self.spent
            raise error
        self._room = self._room // GROWTH if self._room > UNKNOWN_ROOM // GROWTH else 0

    def after_answer(self, answer: LimitedAnswer) -> bool:
        """Learn from an answer; return whether to ask again with more room."""
        self.spent += answer.usage
        self._thoughts.learn_length(answer.usage.thought_tokens)
        is_stuck = 0 < answer.usage.output_tokens <= self._written  # the context or the server limits it
        if is_stuck or not 0 < self._room < self._thoughts.most or not ended_in_thought(answer):
            return False
        self._room = min(self._room * GROWTH, self._thoughts.most)
        self._written = answer.usage.output_tokens
        return True


A = TypeVar("A", bound=LimitedAnswer)


async def ask_with_room(thoughts: Thoughts, length: int, ask: Callable[[int], Awaitable[A]]) -> tuple[A, TokenUsage]:
    """Ask with room for thoughts, again if necessary; return the answer and all tokens spent."""
    room = Room(thoughts, length)
    while True:
        try:
            answer = await ask(room.max_tokens)
        except DecisionError as error:
            room.after_refusal(error)
        else:
            if not room.after_answer(answer):
                return answer, room.spent


def ended_in_thought(answer: LimitedAnswer) -> bool:
    """Whether an answer was cut off within its thoughts."""
    mostly = 2 * answer.usage.thought_tokens > answer.usage.output_tokens
    return answer.cut_off and (mostly or not answer.text.strip())


def cut_off_in_thought(label: str, thoughts: Thoughts, spent: TokenUsage) -> DecisionError:
    """Return the error for a model that thought until it was cut off. The turn does not ask it again."""
    stop_asking(label)
    if thoughts.budget is not None:
        advice = f"raise its thinking_budget, {thoughts.budget:,}"
    else:
        advice = "set reasoning_effort=low or enable_thinking=false, or use a larger context"
    tokens = f"{spent.output_tokens:,} tokens, " if spent.output_tokens else ""
    return DecisionError(f"{label} was cut off while thinking ({tokens}no answer): {advice}", spent)


def thought_in(answer: Sequence[AIMessage], output_tokens: int) -> int:
    """Return the thought tokens of an answer or its pieces, as the server counts them, or estimated from its text."""
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
    return round(output_tokens * thought / (beside + len(text) + calls)) if output_tokens else thought // CHARS_A_TOKEN
