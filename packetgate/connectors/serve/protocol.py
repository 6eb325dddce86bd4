"""OpenAI's two formats, chat completions and responses: requests, answers and errors."""

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from time import time
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from packetgate.connectors.serve.answer_limit import AnswerLimit
from packetgate.state.base import TokenUsage, new_id, storable
from packetgate.state.printing import compact_json
from packetgate.tools.attached.parts import holds_words

SERVED_MODEL = "packetgate"
MAX_NAME_CHARS = 256
UNSUPPORTED = (
    "audio background conversation format function_call grammar guided_choice guided_grammar guided_json guided_regex"
    " json_schema logit_bias logprobs max_tool_calls modalities previous_response_id prompt response_format tool_choice"
    " top_logprobs web_search_options"
).split()
"""Fields that are refused if they ask for something."""
NOTHING_ASKED: tuple[Any, ...] = (None, False, 0, "", [], {}, "auto", "none", ["text"], {"type": "text"})

TokenLimit = Annotated[int, Field(ge=1)]
BoundedName = Annotated[str, Field(max_length=MAX_NAME_CHARS)]


class ApiError(Exception):
    """A refused request; `message` names the problem and the fix."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code

    @property
    def body(self) -> dict[str, Any]:
        """The error in OpenAI's format."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


class WireMessage(BaseModel):
    """A message of a request."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None

    @property
    def _parts(self) -> list[dict[str, Any]]:
        return self.content if isinstance(self.content, list) else [{"type": "text", "text": self.content or ""}]

    @property
    def words(self) -> str:
        """The text parts."""
        return storable("\n".join(part["text"] for part in self._parts if self._is_text(part)))

    @property
    def marked_text(self) -> str:
        """The text; every other part becomes a marker unique to its content."""
        return storable("\n".join(part["text"] if self._is_text(part) else _marker(part) for part in self._parts))

    @property
    def files(self) -> tuple[dict[str, Any], ...]:
        """The parts that are not text."""
        return tuple(part for part in self._parts if not self._is_text(part))

    def _is_text(self, part: dict[str, Any]) -> bool:
        is_answer = self.role == "assistant" and part.get("type") == "output_text" and isinstance(part.get("text"), str)
        return is_answer or holds_words(part)


def _marker(part: dict[str, Any]) -> str:
    return f"[{part.get('type')} {sha256(compact_json(part).encode(errors='replace')).hexdigest()[:8]}]"


@dataclass(frozen=True)
class AnswerEnd:
    """The end of an answer."""

    usage: TokenUsage
    is_cut: bool = False
    """Whether the answer was longer than the request allows."""


@dataclass(frozen=True)
class HistoryMessage:
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value or []


class AnswerRequest(BaseModel):
    """Fields that both formats share."""

    model_config = ConfigDict(extra="allow")

    model: str
    stream: bool | None = None
    tools: list[Any] | None = None
    user: BoundedName | None = None
    safety_identifier: BoundedName | None = None
    stop: Annotated[list[BoundedName], Field(max_length=4), BeforeValidator(_as_list)] = []
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None
    max_output_tokens: TokenLimit | None = None

    @property
    def wire_messages(self) -> list[WireMessage]:
        """All messages, including the system's."""
        raise NotImplementedError

    def answer_format(self) -> "AnswerFormat":
        """Return the format of the answer."""
        raise NotImplementedError

    def answer_limit(self) -> AnswerLimit:
        """Return the limit of the answer."""
        limits = (self.max_tokens, self.max_completion_tokens, self.max_output_tokens)
        return AnswerLimit(tuple(filter(None, self.stop)), min(filter(None, limits), default=None))

    @property
    def history(self) -> tuple[HistoryMessage, ...]:
        """The messages of the user and the assistant, which identify a conversation."""
        return tuple(
            HistoryMessage(message.role, message.marked_text)
            for message in self.wire_messages
            if message.role == "user" or message.role == "assistant"  # noqa: PLR1714  narrows the type
        )

    @property
    def system_prompt(self) -> str:
        """The words of the system's and the developer's messages."""
        words = [message.words.strip() for message in self.wire_messages if message.role in {"system", "developer"}]
        return "\n\n".join(filter(None, words))

    def check_supported(self) -> None:
        """Raise ApiError for another model or an unsupported field."""
        if self.model != SERVED_MODEL:
            raise unknown_model(self.model)
        fields = self.model_extra or {}
        asked = {name: fields.get(name) for name in UNSUPPORTED}
        if isinstance(text := fields.get("text"), dict):
            asked["text.format"] = text.get("format")
        if name := next((name for name, value in asked.items() if value not in NOTHING_ASKED), ""):
            raise ApiError(f"{name} is not supported: leave it out", param=name, code="unsupported_parameter")


class ChatRequest(AnswerRequest):
    """A request for a chat completion."""

    messages: list[WireMessage] = Field(min_length=1)
    stream_options: dict[str, Any] | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = None

    @property
    def wire_messages(self) -> list[WireMessage]:
        """All messages, including the system's."""
        return self.messages

    def answer_format(self) -> "AnswerFormat":
        """Return a chat completion."""
        return _ChatCompletionFormat(with_usage=bool((self.stream_options or {}).get("include_usage")))


class ResponsesRequest(AnswerRequest):
    """A request for a response."""

    input: str | list[dict[str, Any]] = Field(min_length=1)
    instructions: str | None = None

    @cached_property
    def wire_messages(self) -> list[WireMessage]:
        """All messages, including the instructions. Other items are left out."""
        items = [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input
        messages = [WireMessage.model_validate(item) for item in items if item.get("type", "message") == "message"]
        return [WireMessage(role="system", content=self.instructions), *messages] if self.instructions else messages

    def answer_format(self) -> "AnswerFormat":
        """Return a response."""
        return _ResponseFormat(self.instructions)


def unknown_model(name: str) -> ApiError:
    """Return the error for a request that names another model."""
    message = f"there is no model {name!r}: use {SERVED_MODEL!r}"
    return ApiError(message, status=404, param="model", code="model_not_found")


R = TypeVar("R", bound=BaseModel)


def read_request(kind: type[R], body: bytes) -> R:
    """Parse a request's body. Raise ApiError, which names the field, if the body is not a valid request."""
    try:
        return kind.model_validate(json.loads(body))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the body"
            raise ApiError(f"{where}: {first['msg']}", param=where) from error
        raise ApiError("the body is not JSON") from error


def sse_event(data: dict[str, Any]) -> str:
    """Return a server-sent event."""
    return f"data: {compact_json(data)}\n\n"


class _ChatCompletionFormat:
    def __init__(self, *, with_usage: bool) -> None:
        self._id, self._created, self._with_usage = f"chatcmpl-{new_id()}", int(time()), with_usage

    def complete(self, text: str, end: AnswerEnd) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(end)}
        return self._object("chat.completion", [choice], end.usage)

    def begin(self) -> str:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> str:
        return self._chunk({"content": text})

    def end(self, end: AnswerEnd) -> str:
        usage_event = sse_event(self._object("chat.completion.chunk", [], end.usage))
        return self._chunk({}, _finish_reason(end)) + (usage_event if self._with_usage else "") + "data: [DONE]\n\n"

    def failed(self, error: ApiError) -> str:
        return sse_event(error.body)

    def _chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return sse_event(self._object("chat.completion.chunk", [choice]))

    def _object(self, kind: str, choices: list[dict[str, Any]], usage: TokenUsage | None = None) -> dict[str, Any]:
        shared = {"id": self._id, "object": kind, "created": self._created, "model": SERVED_MODEL, "choices": choices}
        if usage is None:
            return shared
        tokens = {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        }
        return {**shared, "usage": tokens}


class _ResponseFormat:
    def __init__(self, instructions: str | None) -> None:
        self._id, self._message_id, self._created = f"resp_{new_id()}", f"msg_{new_id()}", time()
        self._instructions = instructions
        self._events, self._text = 0, ""

    def complete(self, text: str, end: AnswerEnd) -> dict[str, Any]:
        return self._object("incomplete" if end.is_cut else "completed", text, end.usage)

    def begin(self) -> str:
        return (
            self._event("response.created", response=self._object("in_progress"))
            + self._event("response.output_item.added", output_index=0, item=self._message("in_progress"))
            + self._part_event("response.content_part.added", part=_text_part(""))
        )

    def piece(self, text: str) -> str:
        self._text += text
        return self._part_event("response.output_text.delta", delta=text, logprobs=[])

    def end(self, end: AnswerEnd) -> str:
        response = self.complete(self._text, end)
        status = response["status"]
        return (
            self._part_event("response.output_text.done", text=self._text, logprobs=[])
            + self._part_event("response.content_part.done", part=_text_part(self._text))
            + self._event("response.output_item.done", output_index=0, item=self._message(status, self._text))
            + self._event(f"response.{status}", response=response)
        )

    def failed(self, error: ApiError) -> str:
        reason = {"code": "server_error" if error.status >= 500 else "invalid_prompt", "message": error.message}
        return self._event("response.failed", response=self._object("failed") | {"error": reason})

    def _event(self, kind: str, **fields: Any) -> str:
        number, self._events = self._events, self._events + 1
        return f"event: {kind}\n{sse_event({**fields, 'type': kind, 'sequence_number': number})}"

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
            "output": [self._message(status, text)] if usage else [],
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "instructions": self._instructions,
            "previous_response_id": None,
            "usage": usage
            and {
                "input_tokens": usage.input_tokens,
                "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage.input_tokens + usage.output_tokens,
            },
        }


def _finish_reason(end: AnswerEnd) -> str:
    return "length" if end.is_cut else "stop"


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


AnswerFormat = _ChatCompletionFormat | _ResponseFormat
