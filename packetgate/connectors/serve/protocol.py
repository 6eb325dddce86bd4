"""Messages, checks, errors and events that OpenAI's two request formats share."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from packetgate.state.base import storable
from packetgate.state.errors import InputError
from packetgate.state.printing import compact_json

MODEL = "packetgate"
MAX_BYTES = 20_000_000
"""Largest request body in bytes."""

Role = Literal["user", "assistant"]
MAX_NAME = 256
Name = Annotated[str, Field(max_length=MAX_NAME)]


class ApiError(Exception):
    """A refused request; `message` names the problem and the way out."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code

    @property
    def body(self) -> dict[str, Any]:
        """The error in OpenAI's format."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


class Wire(BaseModel):
    """A frozen model of the API."""

    model_config = ConfigDict(frozen=True)


class WireMessage(Wire):
    """A message of a request."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text; every non-text part becomes a marker unique to its content."""
        parts = self.content if isinstance(self.content, list) else [{"text": self.content or ""}]
        return storable("\n".join(str(one["text"]) if _is_text(one) else _mark(one) for one in parts))

    @property
    def words(self) -> str:
        """The text parts."""
        parts = self.content if isinstance(self.content, list) else [{"text": self.content or ""}]
        return storable("\n".join(str(one["text"]) for one in parts if _is_text(one)))

    @property
    def files(self) -> tuple[dict[str, Any], ...]:
        """The non-text parts."""
        return tuple(one for one in self.content if not _is_text(one)) if isinstance(self.content, list) else ()


def _is_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


def _mark(part: dict[str, Any]) -> str:
    return f"[{part.get('type')} {sha256(compact_json(part).encode(errors='replace')).hexdigest()[:8]}]"


class ModelRequest(Wire):
    """Fields that both formats share; all other fields are ignored."""

    model: str
    stream: bool | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    user: Name | None = None
    safety_identifier: Name | None = None
    metadata: dict[str, Any] | None = None
    client_metadata: dict[str, Any] | None = None

    @property
    def said(self) -> tuple[WireMessage, ...]:
        """The messages of the conversation, the system's included."""
        raise NotImplementedError

    @property
    def client_tools(self) -> int:
        """How many tools the client offers."""
        return 0 if self.tool_choice == "none" else len(self.tools or ())

    @property
    def offers_tools(self) -> bool:
        """Whether the model may choose the client's tools; a forced tool is an output format."""
        return self.client_tools > 0 and not isinstance(self.tool_choice, dict)

    @property
    def conversation_id(self) -> str:
        """The client's name for the conversation; empty if it gives none."""
        name = (self.metadata or {}).get("conversation_id")
        return name[:MAX_NAME] if isinstance(name, str) else ""

    @property
    def person(self) -> str:
        """The user, as stated by the client."""
        return self.user or self.safety_identifier or ""

    def refused(self) -> str:
        """Return the first field whose value is not supported."""
        return ""

    def check(self, *, strict: bool) -> None:
        """Raise ApiError for an unsupported field; with `strict` also for the client's tools."""
        if self.model != MODEL:
            raise ApiError(
                f"there is no model {self.model!r}: the one here is {MODEL!r}",
                status=404,
                param="model",
                code="model_not_found",
            )
        if strict and self.client_tools:
            raise ApiError(
                "tools: [serve] of packetgate.toml says strict = true, and this model calls only the tools of its own "
                "servers: leave the tools out, or remove that setting to have them ignored",
                param="tools",
                code="unsupported_parameter",
            )
        if name := self.refused():
            raise ApiError(f"{name}: not supported: leave it out", param=name, code="unsupported_parameter")


@dataclass(frozen=True)
class HistoryMessage:
    """One message of a conversation."""

    role: Role
    text: str


def spoken(messages: Sequence[WireMessage]) -> tuple[HistoryMessage, ...]:
    """Return the messages of the user and the assistant, which identify a conversation."""
    return tuple(HistoryMessage(one.role, one.text) for one in messages if one.role in {"user", "assistant"})


def system_prompt(messages: Sequence[WireMessage]) -> str:
    """Return the words of the system's and the developer's messages."""
    return "\n\n".join(one.words for one in messages if one.role in {"system", "developer"} and one.words.strip())


R = TypeVar("R", bound=BaseModel)


def read_request(kind: type[R], body: bytes) -> R:
    """Read a request's body. Raise ApiError if it is no JSON, or not such a request; the field is named."""
    try:
        return kind.model_validate(json.loads(body))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the body"
            raise ApiError(f"{where}: {first['msg']}", param=where) from error
        raise ApiError("the body is not JSON") from error


def event(data: dict[str, Any]) -> str:
    """Return a server-sent event."""
    return f"data: {compact_json(data)}\n\n"


def refused(error: InputError) -> ApiError:
    """Return an input error as an API error on one line."""
    return ApiError(" ".join(str(error).split()))
