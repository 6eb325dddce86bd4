"""Requests in OpenAI's two formats, chat completions and responses, and the API's errors."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from packetgate.state.base import storable
from packetgate.state.errors import InputError
from packetgate.state.printing import compact_json

SERVED_MODEL = "packetgate"
MAX_BODY_BYTES = 20_000_000
MAX_NAME_CHARS = 256

BoundedName = Annotated[str, Field(max_length=MAX_NAME_CHARS)]


class ApiError(Exception):
    """A refused request; `message` names the problem and what to do."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code

    @classmethod
    def from_error(cls, error: InputError) -> "ApiError":
        """Return an input error as an API error, with its code."""
        return cls(" ".join(str(error).split()), code=error.code)

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
        return self.content if isinstance(self.content, list) else [{"text": self.content or ""}]

    @property
    def words(self) -> str:
        """The text parts."""
        return storable("\n".join(part["text"] for part in self._parts if _is_text(part)))

    @property
    def marked_text(self) -> str:
        """The text; every other part becomes a marker unique to its content."""
        return storable("\n".join(part["text"] if _is_text(part) else _marker(part) for part in self._parts))

    @property
    def files(self) -> tuple[dict[str, Any], ...]:
        """The parts that are not text."""
        return tuple(part for part in self._parts if not _is_text(part))


def _is_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


def _marker(part: dict[str, Any]) -> str:
    return f"[{part.get('type')} {sha256(compact_json(part).encode(errors='replace')).hexdigest()[:8]}]"


class AnswerRequest(BaseModel):
    """Fields that both formats share; unknown fields are ignored."""

    unsupported: ClassVar[tuple[str, ...]] = ()
    """Fields that are refused if they are set."""

    model: str
    stream: bool | None = None
    tools: list[Any] | None = None
    user: BoundedName | None = None
    safety_identifier: BoundedName | None = None
    metadata: dict[str, Any] | None = None

    @property
    def wire_messages(self) -> Sequence[WireMessage]:
        """All messages, including the system's."""
        raise NotImplementedError

    @property
    def output_format(self) -> tuple[str, dict[str, Any] | None]:
        """The name of the field that sets the answer's format, and the field's value."""
        raise NotImplementedError

    @property
    def conversation_id(self) -> str:
        """The client's name for the conversation; empty if the client gives no name."""
        name = (self.metadata or {}).get("conversation_id")
        return name[:MAX_NAME_CHARS] if isinstance(name, str) else ""

    def check(self) -> None:
        """Raise ApiError for another model or an unsupported field."""
        if self.model != SERVED_MODEL:
            raise ApiError(
                f"there is no model {self.model!r}: use {SERVED_MODEL!r}",
                status=404,
                param="model",
                code="model_not_found",
            )
        names = [name for name in self.unsupported if getattr(self, name)]
        format_field, output_format = self.output_format
        if (output_format or {}).get("type", "text") != "text":
            names.append(format_field)
        if names:
            raise ApiError(f"{names[0]}: not supported: leave it out", param=names[0], code="unsupported_parameter")


class ChatRequest(AnswerRequest):
    """A request for a chat completion."""

    unsupported: ClassVar[tuple[str, ...]] = ("logprobs",)

    messages: list[WireMessage] = Field(min_length=1)
    stream_options: dict[str, Any] | None = None
    n: Annotated[int, Field(le=1)] | None = None
    logprobs: bool | None = None
    response_format: dict[str, Any] | None = None

    @property
    def wire_messages(self) -> Sequence[WireMessage]:
        """All messages, including the system's."""
        return self.messages

    @property
    def output_format(self) -> tuple[str, dict[str, Any] | None]:
        """The name of the field that sets the answer's format, and the field's value."""
        return "response_format", self.response_format


class ResponsesRequest(AnswerRequest):
    """A request for a response."""

    unsupported: ClassVar[tuple[str, ...]] = ("previous_response_id", "background", "conversation", "prompt")

    input: str | list[dict[str, Any]] = Field(min_length=1)
    instructions: str | None = None
    previous_response_id: BoundedName | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None
    text: dict[str, Any] | None = None

    @property
    def wire_messages(self) -> Sequence[WireMessage]:
        """All messages, including the instructions; items that are not messages are left out."""
        items = [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input
        messages = [WireMessage.model_validate(item) for item in items if item.get("type", "message") == "message"]
        return [WireMessage(role="system", content=self.instructions), *messages] if self.instructions else messages

    @property
    def output_format(self) -> tuple[str, dict[str, Any] | None]:
        """The name of the field that sets the answer's format, and the field's value."""
        return "text.format", (self.text or {}).get("format")


@dataclass(frozen=True)
class HistoryMessage:
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str


def history_of(messages: Sequence[WireMessage]) -> tuple[HistoryMessage, ...]:
    """Return the messages of the user and the assistant, which identify a conversation."""
    return tuple(
        HistoryMessage(message.role, message.marked_text)
        for message in messages
        if message.role == "user" or message.role == "assistant"  # noqa: PLR1714  narrows the type
    )


def system_prompt(messages: Sequence[WireMessage]) -> str:
    """Return the words of the system's and the developer's messages."""
    words = [message.words.strip() for message in messages if message.role in {"system", "developer"}]
    return "\n\n".join(filter(None, words))


R = TypeVar("R", bound=BaseModel)


def read_request(kind: type[R], body: bytes) -> R:
    """Parse a request's body. Raise ApiError if it is not JSON or not such a request; the error names the field."""
    try:
        return kind.model_validate(json.loads(body))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the body"
            raise ApiError(f"{where}: {first['msg']}", param=where) from error
        raise ApiError("the body is not JSON") from error
