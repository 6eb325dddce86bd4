"""OpenAI's chat completions: a request for one, and the pieces of its answer."""

from time import time
from typing import Any

from pydantic import Field

from packetgate.connectors.serve.protocol import MODEL, ApiError, ModelRequest, Wire, WireMessage, event
from packetgate.state.base import TokenUsage, new_id


class StreamOptions(Wire):
    """What a stream holds beside the answer."""

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
        """Return the first field with a value that would be answered otherwise than it is meant."""
        kind = (self.response_format or {}).get("type", "text")
        fields = {"n": (self.n or 1) != 1, "logprobs": bool(self.logprobs), "response_format": kind != "text"}
        return next((name for name, is_refused in fields.items() if is_refused), "")

    def frame(self) -> "Completion":
        """Return the frame of an answer to this request."""
        return Completion(with_usage=self.stream_options is not None and self.stream_options.include_usage)


class Completion:
    """One answer: the frame that all its pieces share."""

    def __init__(self, *, with_usage: bool = False) -> None:
        """`with_usage`: whether a stream ends with the number of tokens."""
        self._id, self._created, self._with_usage = f"chatcmpl-{new_id()}", int(time()), with_usage

    def whole(self, text: str, usage: TokenUsage) -> dict[str, Any]:
        """Return the answer in one piece."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return self._frame("chat.completion", [choice]) | {"usage": usage_of(usage)}

    def begin(self) -> str:
        """Return the first event of a stream."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> str:
        """Return a piece of the answer as an event."""
        return self._chunk({"content": text})

    def end(self, usage: TokenUsage) -> str:
        """Return the last events of a stream."""
        spent = event(self._frame("chat.completion.chunk", []) | {"usage": usage_of(usage)}) if self._with_usage else ""
        return self._chunk({}, "stop") + spent + "data: [DONE]\n\n"

    def failed(self, error: ApiError) -> str:
        """Return the event that ends a stream early."""
        return event(error.body)

    def _chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return event(self._frame("chat.completion.chunk", [choice]))

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": MODEL, "choices": choices}


def usage_of(usage: TokenUsage) -> dict[str, Any]:
    """Return what models took, as OpenAI counts it."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
