"""Pictures in messages, for models that see, and as words for others."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from langchain_core.messages import BaseMessage, HumanMessage

from packetgate.models.transport import error_text
from packetgate.prompts.rendering import render

_CREDENTIALS_OR_LOAD = (401, 402, 403, 408, 409, 429, 502, 503, 504)
_OF_PICTURES = ("image", "picture", "vision", "modal", "mmproj", "must be a string", "valid string")
_NEVER = ("support", "modal", "mmproj", "vision", "enabled", "unknown variant", "string", "only", "accept")
"""How servers say that a model takes no pictures at all."""
_THIS_ONE = (
    *("unsupported image", "invalid image", "valid image", "image is valid", "format", "mime", "jpeg"),
    *("too large", "size", "decode", "process", "corrupt"),
)
"""How they refuse one picture only."""
_BAD_REQUEST = (400, 413, 415, 422)


@dataclass(frozen=True)
class Picture:
    """A picture to show to a model."""

    told: str
    """Its description."""
    mime_type: str
    data: bytes | None
    """None: it cannot be shown."""
    name: str = ""
    """The name of an attachment; empty for a tool's picture."""


def with_pictures(text: str, pictures: Sequence[Picture]) -> HumanMessage:
    """Return a user's message with pictures after its text."""
    if not pictures:
        return HumanMessage(text)
    parts: list[Any] = [{"type": "text", "text": text}]
    for one in pictures:
        if one.data is None:
            parts.append({"type": "text", "text": render("picture_unseen", told=one.told)})
            continue
        encoded = base64.b64encode(one.data).decode()
        about = {"told": one.told, "name": one.name}
        parts.append({"type": "text", "text": render("picture", told=one.told)})
        parts.append({"type": "image", "base64": encoded, "mime_type": one.mime_type, "extras": about})
    return HumanMessage(parts)


def without_pictures(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages with each picture replaced by its description."""
    return [HumanMessage("\n".join(_words(one.content))) if _has_parts(one) else one for one in messages]


def announced(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages without pictures, but with the texts that announce them."""
    return [
        HumanMessage([part for part in one.content if not _is_picture(part)]) if _has_parts(one) else one
        for one in messages
    ]


def has_pictures(messages: Sequence[BaseMessage]) -> bool:
    """Whether messages contain a picture."""
    return any(True for _ in _pictures(messages))


def names_of(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the names of the user's pictures in messages."""
    return [part["extras"]["name"] for part in _pictures(messages) if part["extras"]["name"]]


def may_refuse_pictures(error: BaseException | None) -> bool:
    """Whether a refusal may be about pictures."""
    return getattr(error, "status_code", None) in _BAD_REQUEST or names_pictures(error)


def names_pictures(error: BaseException | None) -> bool:
    """Whether a refusal names pictures."""
    status = getattr(error, "status_code", None)
    return status is not None and status not in _CREDENTIALS_OR_LOAD and _has(error, _OF_PICTURES)


def takes_none(error: BaseException | None) -> bool:
    """Whether a refusal says that the model takes no pictures at all."""
    return names_pictures(error) and _has(error, _NEVER) and not _has(error, _THIS_ONE)


def _has(error: BaseException | None, words: Sequence[str]) -> bool:
    text = error_text(error).lower() if error else ""
    return any(word in text for word in words)


def _has_parts(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and not isinstance(message.content, str)


def _pictures(messages: Sequence[BaseMessage]) -> Iterator[dict[str, Any]]:
    for one in messages:
        if not isinstance(one.content, str):
            yield from filter(_is_picture, one.content)


def _is_picture(part: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(part, dict) and part.get("type") == "image"


def _words(parts: str | Sequence[Any]) -> Iterator[str]:
    for at, part in enumerate(parts):
        if _is_picture(part):
            yield render("picture_unseen", told=part["extras"]["told"])
        elif at + 1 == len(parts) or not _is_picture(parts[at + 1]):
            yield part if isinstance(part, str) else str(part.get("text", ""))
