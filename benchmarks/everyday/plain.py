"""Play a request with plain tool calling: the model sees all tools, and each of its calls runs."""

from time import perf_counter
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from benchmarks.everyday.cases import Request
from benchmarks.everyday.playing import CallRecord, Transcript
from benchmarks.plain_calls import plain_answer
from packetgate.models.model import Model
from packetgate.models.thoughts import usage_of
from packetgate.state.errors import PacketgateError
from packetgate.toolsets.servers.hub import McpHub

TEMPERATURE = 0.15
MAX_TOKENS = 400
"""Maximum number of tokens of an answer."""
MAX_ROUNDS = 6
"""Maximum number of answers with calls in a turn, more than any request needs."""


async def play_plainly(hub: McpHub, model: Model, request: Request, site: str) -> Transcript:
    """Send the request's messages to the model, run its calls, and return the transcript.

    Raises:
        DecisionError: the model does not answer.
    """
    tools = (await hub.catalogue()).values()
    options = model.sampling(temperature=TEMPERATURE) | {"max_tokens": MAX_TOKENS}
    transcript, messages, started = Transcript(), list[BaseMessage](), perf_counter()
    for words in request.say:
        messages.append(HumanMessage(words.replace("{site}", site)))
        calls: list[CallRecord] = []
        for _ in range(MAX_ROUNDS):
            answer = await plain_answer(model, messages, tools, options)
            messages.append(answer)
            transcript.usage += usage_of(answer)
            for call in answer.tool_calls:
                failed, text = await _run(hub, call["name"], call["args"])
                messages.append(ToolMessage(text, tool_call_id=call["id"]))
                calls.append(
                    CallRecord(call["name"], call["args"], 1.0, doubted=False, approved=False, ran=True, failed=failed)
                )
            if not answer.tool_calls:
                break
        transcript.answers.append(str(answer.text))
        transcript.turns.append(calls)
    transcript.seconds = perf_counter() - started
    return transcript


async def _run(hub: McpHub, name: str, params: dict[str, Any]) -> tuple[bool, str]:
    try:
        result = await hub.call(name, params)
    except PacketgateError as error:
        return True, str(error)
    return not result.success, result.output or str(result.error or "done")
