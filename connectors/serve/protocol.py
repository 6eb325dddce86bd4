"""OpenAI's chat completions as they travel: what a request says, and the pieces of an answer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from time import time
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from state.base import TokenUsage, new_id, storable
from state.errors import InputError
from state.printing import compact_json

MODEL = "packetgate"
MAX_BYTES = 20_000_000
"""Of a request's body."""

Role = Literal["user", "assistant"]
Name = Annotated[str, Field(max_length=256)]


class ApiError(Exception):
    """A request that is not served; `message` names the offending thing and the way out."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code

    @property
    def body(self) -> dict[str, Any]:
        """OpenAI's shape of an error."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


class Wire(BaseModel):
    """What travels."""

    model_config = ConfigDict(frozen=True)


class WireMessage(Wire):
    """A message as it is sent."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """Its words, with a mark where something else stood, other things another."""
        parts = self.content if isinstance(self.content, list) else [{"text": self.content or ""}]
        return storable("\n".join(str(one["text"]) if _is_text(one) else _mark(one) for one in parts))

    @property
    def words(self) -> str:
        """Its words alone."""
        parts = self.content if isinstance(self.content, list) else [{"text": self.content or ""}]
        return storable("\n".join(str(one["text"]) for one in parts if _is_text(one)))

    @property
    def files(self) -> tuple[dict[str, Any], ...]:
        """What it holds beside words."""
        return tuple(one for one in self.content if not _is_text(one)) if isinstance(self.content, list) else ()


def _is_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


def _mark(part: dict[str, Any]) -> str:
    return f"[{part.get('type')} {sha256(compact_json(part).encode(errors='replace')).hexdigest()[:8]}]"


class StreamOptions(Wire):
    """What a stream holds beside the answer."""

    include_usage: bool = False


class ChatRequest(Wire):
    """A request for a chat completion. What of it is not named here is for models that are asked directly."""

    model: str
    messages: list[WireMessage] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    tool_choice: Any = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None
    user: Name | None = None
    safety_identifier: Name | None = None
    metadata: dict[str, str] | None = None

    def check(self) -> None:
        """Refuse what would be answered otherwise than it is meant.

        Raises:
            ApiError: it names the field.
        """
        if self.model != MODEL:
            raise ApiError(
                f"there is no model {self.model!r}: the one here is {MODEL!r}",
                status=404,
                param="model",
                code="model_not_found",
            )
        if (self.tools or self.functions) and self.tool_choice != "none":
            raise ApiError(
                "tools: this model calls the tools of its own servers, checked and approved, and none of a client's: "
                "leave them out, and put their servers into its mcp.json",
                param="tools",
                code="unsupported_parameter",
            )
        kind = (self.response_format or {}).get("type", "text")
        refused = {"n": (self.n or 1) != 1, "logprobs": bool(self.logprobs), "response_format": kind != "text"}
        for name in (name for name, is_refused in refused.items() if is_refused):
            raise ApiError(f"{name}: not served here: leave it out", param=name, code="unsupported_parameter")
        last = self.messages[-1]
        if last.role != "user":
            raise ApiError("the last of the messages must be the user's", param="messages")


@dataclass(frozen=True)
class Said:
    """One message of a conversation."""

    role: Role
    text: str


def spoken(messages: Sequence[WireMessage]) -> tuple[Said, ...]:
    """Return what the user and the assistant said: the only messages that conversations are known by, and told of."""
    return tuple(Said(one.role, one.text) for one in messages if one.role in {"user", "assistant"})


R = TypeVar("R", bound=BaseModel)


def read_request(kind: type[R], body: bytes) -> R:
    """Read a request's body.

    Raises:
        ApiError: it is no JSON, or not such a request; the field is named.
    """
    try:
        return kind.model_validate(json.loads(body))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the body"
            raise ApiError(f"{where}: {first['msg']}", param=where) from error
        raise ApiError("the body is not JSON") from error


class Completion:
    """One answer: the frame that all its pieces share."""

    def __init__(self) -> None:
        self._id, self._created = f"chatcmpl-{new_id()}", int(time())

    def whole(self, text: str, usage: TokenUsage) -> dict[str, Any]:
        """Return the answer in one piece."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return self._frame("chat.completion", [choice]) | {"usage": usage_of(usage)}

    def chunk(self, delta: dict[str, str], finish_reason: str | None = None) -> str:
        """Return a piece as an event."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return event(self._frame("chat.completion.chunk", [choice]))

    def usage(self, usage: TokenUsage) -> str:
        """Return the event that tells what the answer took."""
        return event(self._frame("chat.completion.chunk", []) | {"usage": usage_of(usage)})

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": MODEL, "choices": choices}


def event(data: dict[str, Any]) -> str:
    """Return a server-sent event."""
    return f"data: {compact_json(data)}\n\n"


def usage_of(usage: TokenUsage) -> dict[str, Any]:
    """Return what models took, as OpenAI counts it."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def refused(error: InputError) -> ApiError:
    """Return one of our own errors about what was asked, on one line, as the client is told of it."""
    return ApiError(" ".join(str(error).split()))
