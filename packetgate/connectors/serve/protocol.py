"""What OpenAI's two forms of a request for an answer share: messages, checks, errors and events."""

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
"""Of a request's body."""

Role = Literal["user", "assistant"]
MAX_NAME = 256
Name = Annotated[str, Field(max_length=MAX_NAME)]


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


class ModelRequest(Wire):
    """What requests for an answer share. A field that is not named is for models that are asked directly."""

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
        """Whether the client leaves it to the model to call its tools; one that must be called is a form of answer."""
        return self.client_tools > 0 and not isinstance(self.tool_choice, dict)

    @property
    def conversation_id(self) -> str:
        """The client's own name for the conversation; empty where it gives none."""
        name = (self.metadata or {}).get("conversation_id")
        return name[:MAX_NAME] if isinstance(name, str) else ""

    @property
    def person(self) -> str:
        """Who asks, as the client says."""
        return self.user or self.safety_identifier or ""

    def refused(self) -> str:
        """Return the first field with a value that would be answered otherwise than it is meant."""
        return ""

    def check(self, *, strict: bool) -> None:
        """Refuse what would be answered otherwise than it is meant, with `strict` also tools of the client.

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
    """Return what the user and the assistant said: the only messages that conversations are known by, and told of."""
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
    """Return one of our own errors about what was asked, on one line, as the client is told of it."""
    return ApiError(" ".join(str(error).split()))
