"""The writing speed of a model, measured with a short answer."""

from time import perf_counter

from langchain_core.messages import HumanMessage

from packetgate.models.model import Model, ask
from packetgate.models.requests import usage_of

PROMPT = f"Numbers: {', '.join(str(number) for number in range(100, 160))}.\nWrite the first thirty of them in words."
ANSWER_TOKENS = 48
SLOW = 10.0
"""In tokens per second; below this, a reader waits for each word."""


async def measured_speed(model: Model) -> str:
    """Load the model and return its tokens per second, in words."""
    options = model.sampling(temperature=0.0)
    await ask(model.chat, [HumanMessage("Hello")], options | {"max_tokens": 1})
    begun = perf_counter()
    answer = await ask(model.chat, [HumanMessage(PROMPT)], options | {"max_tokens": ANSWER_TOKENS})
    speed = usage_of(answer).output_tokens / (perf_counter() - begun)
    if not speed:
        return "answers; its server does not count tokens"
    slow = " (slow: a smaller model answers sooner)" if speed < SLOW else ""
    return f"writes {speed:,.1f} tokens per second{slow}"
