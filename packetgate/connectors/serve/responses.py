"""OpenAI's responses: a request for one, and its answer as an object or as events, of the types of `openai`."""

from time import time
from typing import Any, Literal

from openai.types import responses as api
from pydantic import BaseModel, Field

from packetgate.connectors.serve.protocol import MODEL, ApiError, ModelRequest, Name, WireMessage, event
from packetgate.state.base import TokenUsage, new_id

PREFIX = "resp_"
"""How the ids of responses begin."""


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
        """Return the first field with a value that would be answered otherwise than it is meant."""
        kind = ((self.text or {}).get("format") or {}).get("type", "text")
        fields = {
            "previous_response_id": self.previous_response_id,
            "background": self.background,
            "conversation": self.conversation,
            "prompt": self.prompt,
        }
        return next((name for name, value in fields.items() if value), "text.format" if kind != "text" else "")

    def frame(self) -> "ResponseFrame":
        """Return the frame of an answer to this request."""
        return ResponseFrame(self.previous_response_id, self.instructions)


class ResponseFrame:
    """One response: what all its events share."""

    def __init__(self, previous: str | None = None, instructions: str | None = None) -> None:
        self.id, self._message_id, self._created = f"{PREFIX}{new_id()}", f"msg_{new_id()}", time()
        self._previous, self._instructions = previous, instructions
        self._events = 0
        self._text = ""

    def whole(self, text: str, usage: TokenUsage) -> dict[str, Any]:
        """Return the response in one piece."""
        return _sent(self._response("completed", text, usage))

    def begin(self) -> str:
        """Return the first events of a stream."""
        at = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        item = self._message("in_progress")
        return (
            self._event(api.ResponseCreatedEvent, type="response.created", response=self._response("in_progress"))
            + self._event(
                api.ResponseInProgressEvent, type="response.in_progress", response=self._response("in_progress")
            )
            + self._event(
                api.ResponseOutputItemAddedEvent, type="response.output_item.added", output_index=0, item=item
            )
            + self._event(api.ResponseContentPartAddedEvent, type="response.content_part.added", **at, part=_part(""))
        )

    def piece(self, text: str) -> str:
        """Return a piece of the answer as an event."""
        self._text += text
        at = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        return self._event(api.ResponseTextDeltaEvent, type="response.output_text.delta", **at, delta=text, logprobs=[])

    def end(self, usage: TokenUsage) -> str:
        """Return the last events of a stream."""
        at = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        part, item = _part(self._text), self._message("completed", self._text)
        response = self._response("completed", self._text, usage)
        return (
            self._event(api.ResponseTextDoneEvent, type="response.output_text.done", **at, text=self._text, logprobs=[])
            + self._event(api.ResponseContentPartDoneEvent, type="response.content_part.done", **at, part=part)
            + self._event(api.ResponseOutputItemDoneEvent, type="response.output_item.done", output_index=0, item=item)
            + self._event(api.ResponseCompletedEvent, type="response.completed", response=response)
        )

    def failed(self, error: ApiError) -> str:
        """Return the event that ends a stream early."""
        code: Literal["server_error", "invalid_prompt"] = "server_error" if error.status >= 500 else "invalid_prompt"
        why = api.ResponseError(code=code, message=error.message)
        response = self._response("failed", self._text).model_copy(update={"error": why})
        return self._event(api.ResponseFailedEvent, type="response.failed", response=response)

    def _event(self, kind: type[BaseModel], **fields: Any) -> str:
        number, self._events = self._events, self._events + 1
        data = _sent(kind.model_validate({**fields, "sequence_number": number}))
        return f"event: {data['type']}\n{event(data)}"

    def _message(
        self, status: Literal["in_progress", "completed"], text: str | None = None
    ) -> api.ResponseOutputMessage:
        content = [] if text is None else [_part(text)]
        return api.ResponseOutputMessage(
            id=self._message_id, type="message", role="assistant", status=status, content=[*content]
        )

    def _response(
        self, status: Literal["in_progress", "completed", "failed"], text: str = "", usage: TokenUsage | None = None
    ) -> api.Response:
        return api.Response(
            id=self.id,
            object="response",
            created_at=self._created,
            model=MODEL,
            status=status,
            output=[self._message("completed", text)] if status == "completed" else [],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
            instructions=self._instructions,
            previous_response_id=self._previous,
            usage=_usage(usage) if usage is not None else None,
        )


def _part(text: str) -> api.ResponseOutputText:
    return api.ResponseOutputText(type="output_text", text=text, annotations=[])


def _usage(usage: TokenUsage) -> api.ResponseUsage:
    return api.ResponseUsage.model_validate(
        {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
    )


def _sent(data: BaseModel) -> dict[str, Any]:
    return data.model_dump(mode="json", exclude_unset=True)
