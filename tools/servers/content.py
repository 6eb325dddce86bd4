"""From the content of an MCP answer to text, nothing hidden, and attachments: their bytes go to a file or nowhere."""

import asyncio
from base64 import b64decode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from state.attachments import MAX_ATTACHMENTS, MAX_NAME, ResultAttachment
from state.redaction import redacted
from tools.servers.signatures import cleaned_type, fits

Keep = Callable[[bytes], str]
Answer = tuple[str, Any, tuple[ResultAttachment, ...]]


class _Declared(NamedTuple):
    kind: Literal["image", "audio", "resource"]
    mime_type: str
    uri: str
    encoded: str
    """The bytes, as base64."""


async def read_answer(content: Sequence[ContentBlock], structured: Any, keep: Keep | None = None) -> Answer:
    """Return the content's texts, with a line in brackets for what else there is; the structured content, without the
    bytes of that; and what `keep` took of it, and what it did not.
    """
    if all(isinstance(block, TextContent) for block in content):
        return "\n".join(block.text for block in content if isinstance(block, TextContent)), structured, ()
    return await asyncio.to_thread(_read, content, structured, keep)


def _read(content: Sequence[ContentBlock], structured: Any, keep: Keep | None) -> Answer:
    lines: list[str] = []
    attachments: list[ResultAttachment] = []
    told: dict[str, str] = {}
    for block in content:
        declared = _declared(block)
        if declared is not None and declared.encoded not in told:
            told[declared.encoded] = _told(declared, attachments, keep)
        lines.append(told[declared.encoded] if declared else _text_of(block))
    return "\n".join(lines), _without(structured, told), tuple(attachments)


def _told(declared: _Declared, attachments: list[ResultAttachment], keep: Keep | None) -> str:
    """Return the line for what is not text, and add it to the attachments where it can be one."""
    kind, mime_type, uri, encoded = declared
    where = f"{kind} {uri}, " if uri else f"{kind} "
    if len(attachments) == MAX_ATTACHMENTS:
        return f"[{where}{mime_type}, left out: it is beyond the first {MAX_ATTACHMENTS}]"
    try:
        data = b64decode("".join(encoded.split()), validate=True)
    except ValueError:
        return f"[{where}{mime_type}, left out: it is not base64]"
    made = ResultAttachment(
        kind=kind if fits(kind, mime_type, data) else "binary",
        mime_type=mime_type,
        size=len(data),
        sha256=sha256(data).hexdigest(),
        name=_name(uri),
        handle=keep(data) if keep else "",
    )
    attachments.append(made)
    return f"[{made.told_as(uri)}{made.handle and f', {made.handle}'}]"


def _declared(block: ContentBlock) -> _Declared | None:
    """Return what the server says of a block that is not text; None for one that is, or that has no bytes."""
    match block:
        case ImageContent() | AudioContent():
            return _Declared(block.type, cleaned_type(block.mime_type), "", block.data)
        case EmbeddedResource(resource=BlobResourceContents() as inner):
            return _Declared("resource", cleaned_type(inner.mime_type or ""), str(inner.uri), inner.blob)
    return None


def _name(uri: str) -> str:
    """Return the end of an address, as a name."""
    end = redacted(uri).rstrip("/").rsplit("/", 1)[-1]
    return "".join(char for char in end if char.isprintable())[:MAX_NAME]


def _text_of(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ResourceLink():
            return f"[resource {block.uri}]"
        case EmbeddedResource(resource=inner) if not isinstance(inner, BlobResourceContents):
            return inner.text
    return f"[{block.type}]"


def _without(value: Any, told: dict[str, str]) -> Any:
    """Return JSON in which the lines stand for the bytes that they tell of."""
    match value:
        case str():
            return told.get(value, value) if value else value
        case list():
            return [_without(one, told) for one in value]
        case dict():
            return {key: _without(one, told) for key, one in value.items()}
    return value
