"""OpenAI's two formats, chat completions and responses: their requests and their answers."""

from time import time
from typing import Any

from pydantic import Field

from packetgate.connectors.serve.protocol import MODEL, ApiError, ModelRequest, Name, Wire, WireMessage, event
from packetgate.state.base import TokenUsage, new_id


class StreamOptions(Wire):
    """Options of a stream."""

    include_usage: bool = False


class ChatRequest(ModelRequest):
    """A request for a chat completion."""

    messages: list[WireMessage] = Field(min_length=1)
    stream_options: StreamOptions | None = None
    n: int | None = None
    functions: list[Any] | None = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None

    @property
    def said(self) -> tuple[WireMessage, ...]:
        """The messages of the conversation, the system's included."""
        return tuple(self.messages)

    @property
    def client_tools(self) -> int:
        """How many tools the client offers, in either form."""
        return super().client_tools + (0 if self.tool_choice == "none" else len(self.functions or ()))

    def refused(self) -> str:
        """Return the first field whose value is not supported."""
        kind = (self.response_format or {}).get("type", "text")
        fields = {"n": (self.n or 1) != 1, "logprobs": bool(self.logprobs), "response_format": kind != "text"}
        return next((name for name, is_refused in fields.items() if is_refused), "")

    def frame(self) -> "Completion":
        """Return the frame of an answer to this request."""
        return Completion(with_usage=self.stream_options is not None and self.stream_options.include_usage)


class Completion:
    """The common fields of an answer and its pieces."""

    def __init__(self, *, with_usage: bool = False) -> None:
        """`with_usage`: whether a stream ends with the number of tokens."""
        self._id, self._created, self._with_usage = f"chatcmpl-{new_id()}", int(time()), with_usage

    def whole(self, text: str, usage: TokenUsage) -> dict[str, Any]:
        """Return the answer in one piece."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return self._frame("chat.completion", [choice]) | {"usage": _chat_usage(usage)}

    def begin(self) -> str:
        """Return the first event of a stream."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> str:
        """Return a piece of the answer as an event."""
        return self._chunk({"content": text})

    def end(self, usage: TokenUsage) -> str:
        """Return the last events of a stream."""
        spent = (
            event(self._frame("chat.completion.chunk", []) | {"usage": _chat_usage(usage)}) if self._with_usage else ""
        )
        return self._chunk({}, "stop") + spent + "data: [DONE]\n\n"

    def failed(self, error: ApiError) -> str:
        """Return the event that ends a stream early."""
        return event(error.body)

    def _chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return event(self._frame("chat.completion.chunk", [choice]))

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": MODEL, "choices": choices}


def _chat_usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


class ResponsesRequest(ModelRequest):
    """A request for a response."""

    input: str | list[dict[str, Any]] = Field(min_length=1)
    instructions: str | None = None
    previous_response_id: Name | None = None
    store: bool | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None
    text: dict[str, Any] | None = None

    @property
    def said(self) -> tuple[WireMessage, ...]:
        """The messages of the conversation, the system's included; items that are no messages are left out."""
        given = [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input
        items = [one for one in given if one.get("type", "message") == "message"]
        system = [WireMessage(role="system", content=self.instructions)] if self.instructions else []
        return (*system, *(WireMessage.model_validate(one) for one in items))

    def refused(self) -> str:
        """Return the first field whose value is not supported."""
        kind = ((self.text or {}).get("format") or {}).get("type", "text")
        unsupported = ("previous_response_id", "background", "conversation", "prompt")
        return next((name for name in unsupported if getattr(self, name)), "text.format" if kind != "text" else "")

    def frame(self) -> "ResponseFrame":
        """Return the frame of an answer to this request."""
        return ResponseFrame(self.instructions)


class ResponseFrame:
    """The common fields of a response and its events."""

    def __init__(self, instructions: str | None = None) -> None:
        self._id, self._message_id, self._created = f"resp_{new_id()}", f"msg_{new_id()}", time()
        self._instructions = instructions
        self._events = 0
        self._text = ""

    def whole(self, text: str, usage: TokenUsage) -> dict[str, Any]:
        """Return the response in one piece."""
        return self._response("completed", text, usage)

    def begin(self) -> str:
        """Return the first events of a stream."""
        return (
            self._event("response.created", response=self._response("in_progress"))
            + self._event("response.in_progress", response=self._response("in_progress"))
            + self._event("response.output_item.added", output_index=0, item=self._message("in_progress"))
            + self._text_event("response.content_part.added", part=_part(""))
        )

    def piece(self, text: str) -> str:
        """Return a piece of the answer as an event."""
        self._text += text
        return self._text_event("response.output_text.delta", delta=text, logprobs=[])

    def end(self, usage: TokenUsage) -> str:
        """Return the last events of a stream."""
        message = self._message("completed", _part(self._text))
        return (
            self._text_event("response.output_text.done", text=self._text, logprobs=[])
            + self._text_event("response.content_part.done", part=_part(self._text))
            + self._event("response.output_item.done", output_index=0, item=message)
            + self._event("response.completed", response=self._response("completed", self._text, usage))
        )

    def failed(self, error: ApiError) -> str:
        """Return the event that ends a stream early."""
        why = {"code": "server_error" if error.status >= 500 else "invalid_prompt", "message": error.message}
        return self._event("response.failed", response=self._response("failed") | {"error": why})

    def _event(self, kind: str, **fields: Any) -> str:
        number, self._events = self._events, self._events + 1
        return f"event: {kind}\n{event({**fields, 'type': kind, 'sequence_number': number})}"

    def _text_event(self, kind: str, **fields: Any) -> str:
        return self._event(kind, item_id=self._message_id, output_index=0, content_index=0, **fields)

    def _message(self, status: str, *content: dict[str, Any]) -> dict[str, Any]:
        kind = {"id": self._message_id, "type": "message", "role": "assistant"}
        return {**kind, "status": status, "content": [*content]}

    def _response(self, status: str, text: str = "", usage: TokenUsage | None = None) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "model": MODEL,
            "status": status,
            "output": [self._message("completed", _part(text))] if status == "completed" else [],
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


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}
