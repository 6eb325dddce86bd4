"""Read the content blocks of a server's answer: texts, links and media. Media are stored."""

import asyncio
from base64 import b64decode
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from packetgate.state.printing import byte_size
from packetgate.state.redaction import redacted
from packetgate.state.routing import MAX_ATTACHMENTS, ResultAttachment, ToolResult
from packetgate.tools.attached.media import matches_declaration, normalized_media_type
from packetgate.tools.servers.messages import MAX_ANSWER_PARTS
from packetgate.tools.servers.results import to_result
from packetgate.tools.servers.server import StoreContent
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS


async def result_of_answer(
    answer: CallToolResult,
    took_ms: float,
    store_text: StoreContent | None = None,
    store_file: StoreContent | None = None,
) -> ToolResult:
    """Return a server's answer as the result of a call.

    In the result's text, a line in brackets describes each part that is not text. In the structured content, the same
    lines replace base64.

    Args:
        store_text: stores a long text.
        store_file: stores the bytes of an attachment.
    """
    texts = [block.text for block in answer.content if isinstance(block, TextContent)]
    length = sum(map(len, texts)) + len(str(answer.structured_content or ""))
    if length <= MAX_SHOWN_CHARS and len(texts) == len(answer.content):
        return _result(answer, took_ms, store_text, store_file)
    return await asyncio.to_thread(_result, answer, took_ms, store_text, store_file)


_MediaKind = Literal["image", "audio", "resource"]


class _Media(NamedTuple):
    kind: _MediaKind
    mime_type: str
    """The media type that the server declared."""
    uri: str
    encoded: str
    data: bytes | None
    """The bytes; None if the text is not base64."""


def _result(
    answer: CallToolResult, took_ms: float, store_text: StoreContent | None, store_file: StoreContent | None
) -> ToolResult:
    lines: list[str] = []
    parts: list[dict[str, Any]] = []
    attachments: list[ResultAttachment] = []
    media_lines: dict[str, str] = {}
    """By the base64 text of a media part, the line that describes it."""
    for block in answer.content:
        part, media = block.model_dump(mode="json", by_alias=True, exclude_none=True), _media(block)
        if media is None:
            lines.append(_block_text(block))
        else:
            if media.encoded not in media_lines:
                media_lines[media.encoded] = _attach(media, attachments, store_file)
            lines.append(media_lines[media.encoded])
            inner = part["resource"] if media.kind == "resource" else part
            inner.pop("data", None)
            inner.pop("blob", None)
            part |= {"sha256": "" if media.data is None else sha256(media.data).hexdigest(), "fallback_text": lines[-1]}
        parts.append(part)
    is_plain_text = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    return to_result(
        "\n".join(lines),
        _without_media(answer.structured_content, media_lines) if media_lines else answer.structured_content,
        took_ms,
        is_error=bool(answer.is_error),
        cut=len(answer.content) > MAX_ANSWER_PARTS,
        store_text=store_text,
        attachments=tuple(attachments),
        parts=() if is_plain_text else tuple(parts),
        meta=answer.meta,
    )


def _media(block: ContentBlock) -> _Media | None:
    kind: _MediaKind
    match block:
        case ImageContent() | AudioContent():
            kind, mime_type, uri, encoded = block.type, block.mime_type, "", block.data
        case EmbeddedResource(resource=BlobResourceContents() as inner):
            kind, mime_type, uri, encoded = "resource", inner.mime_type or "", str(inner.uri), inner.blob
        case _:
            return None
    try:
        data = b64decode("".join(encoded.split()), validate=True)
    except ValueError:
        data = None
    return _Media(kind, normalized_media_type(mime_type), uri, encoded, data)


def _attach(media: _Media, attachments: list[ResultAttachment], store_file: StoreContent | None) -> str:
    """Add a media part to the attachments, and return the line that describes it."""
    kind, mime_type, uri, _, data = media
    label = f"{kind} {uri}, " if uri else f"{kind} "
    if len(attachments) == MAX_ATTACHMENTS:
        return f"[{label}{mime_type}, left out: a result has at most {MAX_ATTACHMENTS} attachments]"
    if data is None:
        return f"[{label}{mime_type}, left out: invalid base64]"
    file_name = redacted(uri).rstrip("/").rsplit("/", 1)[-1]
    attachment = ResultAttachment(
        kind=kind if matches_declaration(kind, mime_type, data) else "binary",
        mime_type=mime_type,
        size=len(data),
        sha256=sha256(data).hexdigest(),
        name="".join(char for char in file_name if char.isprintable())[:200],
        handle=store_file(data) if store_file else "",
    )
    attachments.append(attachment)
    return f"[{attachment.described_as(uri)}{attachment.handle and f', {attachment.handle}'}]"


def _block_text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ResourceLink() as link:
            size = byte_size(link.size) if link.size is not None else ""
            facts = [link.name, link.title if link.title != link.name else "", str(link.uri), link.mime_type, size]
            text = f"resource {', '.join(filter(None, facts))}" + (f": {link.description}" if link.description else "")
            return f"[{' '.join(text.split())}]"
        case EmbeddedResource(resource=inner) if not isinstance(inner, BlobResourceContents):
            return inner.text
    return f"[{block.type}]"


def _without_media(value: Any, media_lines: dict[str, str]) -> Any:
    match value:
        case str():
            return media_lines.get(value, value) if value else value
        case list():
            return [_without_media(inner, media_lines) for inner in value]
        case dict():
            return {key: _without_media(inner, media_lines) for key, inner in value.items()}
    return value
