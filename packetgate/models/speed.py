"""How fast a model reads and writes, as measured with a short prompt and answer."""

from dataclasses import dataclass
from time import perf_counter

from langchain_core.messages import HumanMessage

from packetgate.models.model import Model, ask
from packetgate.models.requests import usage_of
from packetgate.state.base import TokenUsage

PROMPT = f"Numbers: {', '.join(str(number) for number in range(100, 160))}.\nWrite the first thirty of them in words."
ANSWER_TOKENS = 48
SLOW = 10.0
"""Tokens per second; below this, a person who reads the answer as it is written waits for each word."""


@dataclass(frozen=True)
class Speed:
    """Tokens per second; None where the server does not count tokens."""

    reading: float | None
    writing: float | None

    def __str__(self) -> str:
        """Return the speed in words."""
        if self.reading is None or self.writing is None:
            return "answers; its server does not count tokens"
        slow = " (slow: a smaller model answers sooner)" if self.writing < SLOW else ""
        return f"reads {self.reading:,.0f} and writes {self.writing:,.1f} tokens per second{slow}"


async def measured(model: Model) -> Speed:
    """Ask a model three times: to have it loaded, to time one token after the prompt, and to time an answer."""
    await _asked(model, "Hello", 1)
    read, reading_s = await _asked(model, PROMPT, 1)
    written, writing_s = await _asked(model, PROMPT, ANSWER_TOKENS)
    fresh = read.input_tokens - read.cached_tokens
    return Speed(_per_second(fresh, reading_s), _per_second(written.output_tokens, writing_s))


async def _asked(model: Model, prompt: str, most: int) -> tuple[TokenUsage, float]:
    begun = perf_counter()
    answer = await ask(model.chat, [HumanMessage(prompt)], model.sampling(temperature=0.0) | {"max_tokens": most})
    return usage_of(answer), perf_counter() - begun


def _per_second(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if tokens > 0 and seconds > 0 else None
