"""Play a request with plain tool calling: the model sees all tools, and every call that it writes runs."""

from time import perf_counter
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from benchmarks.everyday.asked import Asked as Request
from benchmarks.everyday.playing import Made, Played
from benchmarks.plain_calls import plain_answer
from packetgate.models.model import Model
from packetgate.models.thoughts import usage_of
from packetgate.state.errors import PacketgateError
from packetgate.toolsets.servers.hub import McpHub

TEMPERATURE = 0.15
LONGEST = 400
"""Maximum number of tokens of an answer."""
MOST_ROUNDS = 6
"""Maximum number of answers with calls in a turn; no request needs so many."""


async def played_plainly(hub: McpHub, model: Model, request: Request, site: str) -> Played:
    """Send the request's messages to the model, run its calls, and return the outcome.

    Raises:
        DecisionError: the model does not answer.
    """
    tools = (await hub.catalogue()).values()
    options = model.sampling(temperature=TEMPERATURE) | {"max_tokens": LONGEST}
    outcome, messages, started = Played(), list[BaseMessage](), perf_counter()
    for words in request.say:
        messages.append(HumanMessage(words.replace("{site}", site)))
        calls: list[Made] = []
        for _ in range(MOST_ROUNDS):
            answer = await plain_answer(model, messages, tools, options)
            messages.append(answer)
            outcome.spent += usage_of(answer)
            for call in answer.tool_calls:
                failed, text = await _run(hub, call["name"], call["args"])
                messages.append(ToolMessage(text, tool_call_id=call["id"]))
                calls.append(
                    Made(call["name"], call["args"], 1.0, doubted=False, approved=False, ran=True, failed=failed)
                )
            if not answer.tool_calls:
                break
        outcome.answers.append(str(answer.text))
        outcome.turns.append(calls)
    outcome.seconds = perf_counter() - started
    return outcome


async def _run(hub: McpHub, name: str, params: dict[str, Any]) -> tuple[bool, str]:
    try:
        result = await hub.call(name, params)
    except PacketgateError as error:
        return True, str(error)
    return not result.success, result.output or str(result.error or "done")
