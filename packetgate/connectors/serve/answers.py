"""Answers in OpenAI's two formats, complete and as server-sent events."""

from collections.abc import Iterable
from time import time
from typing import Any

from packetgate.connectors.serve.protocol import SERVED_MODEL, AnswerRequest, ApiError, ChatRequest, ResponsesRequest
from packetgate.state.base import TokenUsage, new_id
from packetgate.state.printing import compact_json


def event(data: dict[str, Any]) -> str:
    """Return a server-sent event."""
    return f"data: {compact_json(data)}\n\n"


class _ChatCompletion:
    def __init__(self, *, with_usage: bool) -> None:
        self._id, self._created, self._with_usage = f"chatcmpl-{new_id()}", int(time()), with_usage

    def complete(self, text: str, usage: TokenUsage) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return self._object("chat.completion", [choice], usage=_chat_usage(usage))

    def begin(self) -> str:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> str:
        return self._chunk({"content": text})

    def end(self, usage: TokenUsage) -> str:
        usage_event = event(self._object("chat.completion.chunk", [], usage=_chat_usage(usage)))
        return self._chunk({}, "stop") + (usage_event if self._with_usage else "") + "data: [DONE]\n\n"

    def failed(self, error: ApiError) -> str:
        return event(error.body)

    def _chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return event(self._object("chat.completion.chunk", [choice]))

    def _object(self, kind: str, choices: Iterable[dict[str, Any]], **more: Any) -> dict[str, Any]:
        shared = {"id": self._id, "object": kind, "created": self._created, "model": SERVED_MODEL}
        return {**shared, "choices": choices, **more}


def _chat_usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


class _Response:
    def __init__(self, instructions: str | None) -> None:
        self._id, self._message_id, self._created = f"resp_{new_id()}", f"msg_{new_id()}", time()
        self._instructions = instructions
        self._events, self._text = 0, ""

    def complete(self, text: str, usage: TokenUsage) -> dict[str, Any]:
        return self._object("completed", text, usage)

    def begin(self) -> str:
        return (
            self._event("response.created", response=self._object("in_progress"))
            + self._event("response.output_item.added", output_index=0, item=self._message("in_progress"))
            + self._part_event("response.content_part.added", part=_text_part(""))
        )

    def piece(self, text: str) -> str:
        self._text += text
        return self._part_event("response.output_text.delta", delta=text, logprobs=[])

    def end(self, usage: TokenUsage) -> str:
        return (
            self._part_event("response.output_text.done", text=self._text, logprobs=[])
            + self._part_event("response.content_part.done", part=_text_part(self._text))
            + self._event("response.output_item.done", output_index=0, item=self._message("completed", self._text))
            + self._event("response.completed", response=self._object("completed", self._text, usage))
        )

    def failed(self, error: ApiError) -> str:
        reason = {"code": "server_error" if error.status >= 500 else "invalid_prompt", "message": error.message}
        return self._event("response.failed", response=self._object("failed") | {"error": reason})

    def _event(self, kind: str, **fields: Any) -> str:
        number, self._events = self._events, self._events + 1
        return f"event: {kind}\n{event({**fields, 'type': kind, 'sequence_number': number})}"

    def _part_event(self, kind: str, **fields: Any) -> str:
        return self._event(kind, item_id=self._message_id, output_index=0, content_index=0, **fields)

    def _message(self, status: str, text: str | None = None) -> dict[str, Any]:
        content = [] if text is None else [_text_part(text)]
        return {"id": self._message_id, "type": "message", "role": "assistant", "status": status, "content": content}

    def _object(self, status: str, text: str = "", usage: TokenUsage | None = None) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "model": SERVED_MODEL,
            "status": status,
            "output": [self._message("completed", text)] if status == "completed" else [],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "instructions": self._instructions,
            "previous_response_id": None,
            "usage": _response_usage(usage) if usage is not None else None,
        }


def _response_usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


AnswerFormat = _ChatCompletion | _Response


def answer_format(request: AnswerRequest) -> AnswerFormat:
    """Return the format that a request wants its answer in."""
    if isinstance(request, ResponsesRequest):
        return _Response(request.instructions)
    options = request.stream_options if isinstance(request, ChatRequest) else None
    return _ChatCompletion(with_usage=bool((options or {}).get("include_usage")))
