"""Read and write three protocols of model servers: chat completions, responses, and Google's generateContent."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

MODEL = "gpt-5-mini"
"""A known name, because some clients look up what a model can do."""
GEMINI = "gemini-2.5-flash"
LABELS = frozenset({"type", "role", "id", "call_id", "name"})
"""Keys of a message that hold no text."""

Call = tuple[str, dict[str, Any]]
"""A tool's name and arguments."""


@dataclass(frozen=True)
class Form:
    """A protocol: functions that read its requests, and write a reply as a body or as events."""

    tools: Callable[[dict[str, Any]], dict[str, Any]]
    """Returns the schemas of the listed tools by name."""
    news: Callable[[dict[str, Any]], str]
    whole: Callable[[Call | str, str], dict[str, Any]]
    """Returns a reply's body, from the reply and a fresh identifier."""
    events: Callable[[Call | str, str], Iterator[dict[str, Any] | str]]


def text_of(content: Any) -> str:
    """Return the text of any part of a message."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(map(text_of, content))
    if isinstance(content, dict):
        return text_of([value for key, value in content.items() if key not in LABELS])
    return ""


def _after_reply(messages: list[dict[str, Any]], is_reply: Callable[[dict[str, Any]], bool]) -> str:
    last = max((place for place, message in enumerate(messages) if is_reply(message)), default=-1)
    return text_of(messages[last + 1 :])


def _chat_tools(body: dict[str, Any]) -> dict[str, Any]:
    functions = [tool["function"] for tool in body.get("tools", []) if tool["type"] == "function"]
    return {function["name"]: function.get("parameters") for function in functions}


def _chat_news(body: dict[str, Any]) -> str:
    return _after_reply(body["messages"], lambda message: message["role"] in {"assistant", "system", "developer"})


def _chat_message(reply: Call | str, fresh: str) -> dict[str, Any]:
    if isinstance(reply, str):
        return {"role": "assistant", "content": reply}
    function = {"name": reply[0], "arguments": json.dumps(reply[1])}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": fresh, "type": "function", "function": function}],
    }


USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _chat_whole(reply: Call | str, fresh: str) -> dict[str, Any]:
    reason = "stop" if isinstance(reply, str) else "tool_calls"
    choice = {"index": 0, "message": _chat_message(reply, fresh), "finish_reason": reason}
    frame = {"id": fresh, "created": 0, "model": MODEL, "object": "chat.completion"}
    return {**frame, "choices": [choice], "usage": USAGE}


def _chat_events(reply: Call | str, fresh: str) -> Iterator[dict[str, Any] | str]:
    whole = _chat_whole(reply, fresh)
    choice = whole["choices"][0]
    delta = choice["message"]
    if "tool_calls" in delta:
        delta = {**delta, "tool_calls": [{"index": 0, **call} for call in delta["tool_calls"]]}
    frame = {**whole, "object": "chat.completion.chunk", "usage": None}
    yield {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {**frame, "choices": [], "usage": USAGE}
    yield "[DONE]"


def _response_tools(body: dict[str, Any]) -> dict[str, Any]:
    tools: dict[str, Any] = {}
    for tool in body.get("tools", []):
        if tool["type"] == "function":
            tools[tool["name"]] = tool.get("parameters")
        elif tool["type"] == "namespace":
            tools |= {f"{tool['name']}.{one['name']}": one.get("parameters") for one in tool["tools"]}
    return tools


def _response_news(body: dict[str, Any]) -> str:
    items = body["input"]
    if isinstance(items, str):
        return items
    return _after_reply(items, lambda item: item.get("role") == "assistant" or item.get("type") == "function_call")


def _response_item(reply: Call | str, fresh: str) -> dict[str, Any]:
    if isinstance(reply, str):
        content = [{"type": "output_text", "text": reply, "annotations": []}]
        return {"type": "message", "id": f"msg_{fresh}", "role": "assistant", "status": "completed", "content": content}
    namespace, _, name = reply[0].rpartition(".")
    item = {"type": "function_call", "id": f"fc_{fresh}", "call_id": fresh, "status": "completed", "name": name}
    return {**item, "arguments": json.dumps(reply[1]), **({"namespace": namespace} if namespace else {})}


def _response_whole(reply: Call | str, fresh: str) -> dict[str, Any]:
    usage: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    frame = {"id": f"resp_{fresh}", "object": "response", "created_at": 0, "model": MODEL, "status": "completed"}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}
    return {**frame, **rest, "output": [_response_item(reply, fresh)]}


def _response_events(reply: Call | str, fresh: str) -> Iterator[dict[str, Any] | str]:
    whole = _response_whole(reply, fresh)
    item = whole["output"][0]
    started = {**whole, "status": "in_progress", "output": []}
    yield {"type": "response.created", "sequence_number": 0, "response": started}
    yield {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item}
    yield {"type": "response.completed", "sequence_number": 3, "response": whole}


def _gemini_tools(body: dict[str, Any]) -> dict[str, Any]:
    declared = [one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]
    return {one["name"]: one.get("parametersJsonSchema", one.get("parameters")) for one in declared}


def _gemini_news(body: dict[str, Any]) -> str:
    return _after_reply(body["contents"], lambda content: content["role"] == "model")


def _gemini_whole(reply: Call | str, _fresh: str) -> dict[str, Any]:
    part = {"text": reply} if isinstance(reply, str) else {"functionCall": {"name": reply[0], "args": reply[1]}}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": GEMINI}


def _gemini_events(reply: Call | str, fresh: str) -> Iterator[dict[str, Any] | str]:
    yield _gemini_whole(reply, fresh)


FORMS = {
    "chat/completions": Form(_chat_tools, _chat_news, _chat_whole, _chat_events),
    "responses": Form(_response_tools, _response_news, _response_whole, _response_events),
    "generateContent": Form(_gemini_tools, _gemini_news, _gemini_whole, _gemini_events),
}
