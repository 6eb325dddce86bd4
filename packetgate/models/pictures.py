"""Images in messages, and their descriptions for models that do not accept images."""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from langchain_core.messages import BaseMessage, HumanMessage

from packetgate.prompts.rendering import render


@dataclass(frozen=True)
class Picture:
    """An image for a model."""

    description: str
    """The description of the image."""
    mime_type: str
    data: bytes | None
    """The content; None: the image cannot be sent."""
    name: str = ""
    """The file name of an attachment; empty for an image that a tool returned."""


def with_pictures(text: str, pictures: Sequence[Picture]) -> HumanMessage:
    """Return a user's message with images after its text."""
    if not pictures:
        return HumanMessage(text)
    parts: list[Any] = [{"type": "text", "text": text}]
    for one in pictures:
        if one.data is None:
            parts.append({"type": "text", "text": render("picture_unseen", told=one.description)})
            continue
        encoded = base64.b64encode(one.data).decode()
        about = {"description": one.description, "name": one.name}
        parts.append({"type": "text", "text": render("picture", told=one.description)})
        parts.append({"type": "image", "base64": encoded, "mime_type": one.mime_type, "extras": about})
    return HumanMessage(parts)


def without_pictures(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages with each image replaced by its description."""
    return [HumanMessage("\n".join(_words(one.content))) if _has_parts(one) else one for one in messages]


def picture_names(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the name of each image in messages; empty for an image that a tool returned."""
    parts = [part for one in messages if not isinstance(one.content, str) for part in one.content]
    return [part["extras"]["name"] for part in parts if _is_picture(part)]


def _has_parts(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and not isinstance(message.content, str)


def _is_picture(part: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(part, dict) and part.get("type") == "image"


def _words(parts: str | Sequence[Any]) -> Iterator[str]:
    for at, part in enumerate(parts):
        if _is_picture(part):
            yield render("picture_unseen", told=part["extras"]["description"])
        elif at + 1 == len(parts) or not _is_picture(parts[at + 1]):
            yield part if isinstance(part, str) else str(part.get("text", ""))
