"""Room for thoughts in addition to an answer's own length."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from langchain_core.messages import AIMessage

from packetgate.models.decoding.formats import CHANNEL_HEADERS, THOUGHTS
from packetgate.models.transport import is_too_long
from packetgate.models.turns import give_up
from packetgate.state.base import TokenUsage
from packetgate.state.errors import DecisionError

UNKNOWN_ROOM, MOST_ROOM, GROWTH = 2_000, 32_000, 4
"""Tokens for the thoughts of an unknown model, the most, and the factor after a cut-off."""
CHARS_A_TOKEN = 4


class Thoughts:
    """How long the thoughts of a model are, as seen in this process."""

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self.longest: int | None = None
        """Tokens of its longest thought so far; None: no answer yet."""
        self.opened: bool | None = None
        """Whether its template opens its thoughts, so that only their end is written; None: not known."""
        self.most = MOST_ROOM if budget is None else min(MOST_ROOM, budget)
        """Most tokens for a thought: its server may have refused more."""

    @property
    def room(self) -> int:
        """Tokens for a thought, at first."""
        wanted = 0 if self.longest == 0 else max(UNKNOWN_ROOM, 2 * (self.longest or 0))
        return self.most if self.budget is not None else min(wanted, self.most)

    def learn_length(self, tokens: int) -> None:
        """Learn from an answer."""
        self.longest = max(tokens, self.longest or 0)

    def learn_opening(self, answer: Sequence[AIMessage]) -> None:
        """Learn from an answer whether thoughts are opened by the template: not if it contains their beginning."""
        if self.opened is None and (_beside(answer) or _begins(_text(answer))):
            self.opened = False


class Answered(Protocol):
    """An answer, in a form or in words."""

    @property
    def text(self) -> str:
        """What was written."""

    @property
    def usage(self) -> TokenUsage:
        """The tokens that it took."""

    @property
    def cut_off(self) -> bool:
        """Whether the length ran out."""


class Room:
    """The length of a request, which refusals and cut-offs change."""

    def __init__(self, thoughts: Thoughts, length: int) -> None:
        self.spent = TokenUsage()
        """Over all answers."""
        self._thoughts, self._length, self._room, self._written = thoughts, length, thoughts.room, 0
        self._shrunk = False

    @property
    def max_tokens(self) -> int:
        """The length to ask for."""
        return self._length + self._room

    def refused(self, error: DecisionError) -> bool:
        """Whether to ask again with less room."""
        if not self._room or not is_too_long(error.__cause__):
            error.usage += self.spent
            return False
        self._room = self._room // GROWTH if self._room > UNKNOWN_ROOM // GROWTH else 0
        self._shrunk = True
        return True

    def answered(self, answer: Answered) -> bool:
        """Learn from an answer; return whether to ask again with more room."""
        self.spent += answer.usage
        if self._shrunk:
            self._thoughts.most = self._room
        self._thoughts.learn_length(answer.usage.thought_tokens)
        stuck = 0 < answer.usage.output_tokens <= self._written  # by its context or its server, whatever it may take
        if stuck or self._room >= self._thoughts.most or not ended_in_thought(answer):
            return False
        self._room = min(max(self._room * GROWTH, UNKNOWN_ROOM), self._thoughts.most)
        self._written = answer.usage.output_tokens
        return True


A = TypeVar("A", bound=Answered)


async def with_room(thoughts: Thoughts, length: int, ask: Callable[[int], Awaitable[A]]) -> tuple[A, TokenUsage]:
    """Ask with room for thoughts, again if necessary; return the answer and all tokens spent."""
    room = Room(thoughts, length)
    while True:
        try:
            answer = await ask(room.max_tokens)
        except DecisionError as error:
            if not room.refused(error):
                raise
        else:
            if not room.answered(answer):
                return answer, room.spent


def ended_in_thought(answer: Answered) -> bool:
    """Whether an answer was cut off within its thoughts."""
    mostly = 2 * answer.usage.thought_tokens > answer.usage.output_tokens
    return answer.cut_off and (mostly or not answer.text.strip())


def cut_off_in_thought(label: str, thoughts: Thoughts, spent: TokenUsage) -> DecisionError:
    """Return the error for a model that thought until it was cut off. The turn does not ask it again."""
    give_up(label)
    if thoughts.budget is not None:
        way_out = f"raise its thinking_budget, {thoughts.budget:,}"
    else:
        way_out = "have it think less, by reasoning_effort=low or enable_thinking=false, or give it a larger context"
    told = f"{spent.output_tokens:,} tokens, " if spent.output_tokens else ""
    return DecisionError(f"{label} was cut off in its thoughts ({told}no answer): {way_out}", spent)


def thought_in(answer: Sequence[AIMessage], output_tokens: int) -> int:
    """Return the thought tokens of an answer or its pieces, as the server counts them, or estimated.

    Thoughts are in `reasoning_content` or between marks; some servers only count them.
    """
    known = [one.usage_metadata for one in answer if one.usage_metadata]
    told = sum(usage.get("output_token_details", {}).get("reasoning", 0) for usage in known)
    if told:
        return told
    beside, text = _beside(answer), _text(answer)
    calls = sum(len(str(one.tool_calls or one.invalid_tool_calls or "")) for one in answer)
    thought, whole = beside + _in_text(text), beside + len(text) + calls
    if thought:
        return round(output_tokens * thought / whole) if output_tokens else thought // CHARS_A_TOKEN
    unseen = output_tokens > len(text.encode(errors="replace")) + calls  # no token is less than a byte
    return output_tokens - whole // CHARS_A_TOKEN if unseen else 0


def _beside(answer: Sequence[AIMessage]) -> int:
    return sum(len(one.additional_kwargs.get("reasoning_content") or "") for one in answer)


def _text(answer: Sequence[AIMessage]) -> str:
    return "".join(one.text for one in answer)


def _begins(text: str) -> bool:
    return text.lstrip().startswith((*(one.begin for one in THOUGHTS), f"{CHANNEL_HEADERS[0]}analysis"))


def _in_text(text: str) -> int:
    ends = [text.rfind(end) for end in (*(one.end for one in THOUGHTS), f"{CHANNEL_HEADERS[0]}final")]
    return max(ends) if max(ends) > 0 else len(text) if _begins(text) else 0
