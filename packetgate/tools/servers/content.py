"""Read the content blocks of a server's answer: texts, links, and media, which are stored."""

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
from packetgate.tools.attached.media import cleaned_type, matches_declaration
from packetgate.tools.servers.messages import MAX_ANSWER_PARTS
from packetgate.tools.servers.results import to_result
from packetgate.tools.servers.server import Keep
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS


async def result_of_answer(
    answer: CallToolResult, took_ms: float, keep: Keep | None = None, keep_file: Keep | None = None
) -> ToolResult:
    """Return the result for a server's answer; `keep` stores a long text, `keep_file` the bytes of attachments.

    Its text has a line in brackets for each part that is not text, and its structured content the same lines in place
    of base64.
    """
    texts = [block.text for block in answer.content if isinstance(block, TextContent)]
    length = sum(map(len, texts)) + len(str(answer.structured_content or ""))
    if length <= MAX_SHOWN_CHARS and len(texts) == len(answer.content):
        return _result(answer, took_ms, keep, keep_file)
    return await asyncio.to_thread(_result, answer, took_ms, keep, keep_file)


_MediaKind = Literal["image", "audio", "resource"]


class _Media(NamedTuple):
    kind: _MediaKind
    mime_type: str
    """The media type that the server declared."""
    uri: str
    encoded: str
    data: bytes | None
    """The bytes; None if the text is not base64."""


def _result(answer: CallToolResult, took_ms: float, keep: Keep | None, keep_file: Keep | None) -> ToolResult:
    lines: list[str] = []
    parts: list[dict[str, Any]] = []
    attachments: list[ResultAttachment] = []
    media_lines: dict[str, str] = {}
    """The line that describes each media part, by its base64 text."""
    for block in answer.content:
        part, media = block.model_dump(mode="json", by_alias=True, exclude_none=True), _media(block)
        if media is None:
            lines.append(_block_text(block))
        else:
            if media.encoded not in media_lines:
                media_lines[media.encoded] = _attach(media, attachments, keep_file)
            lines.append(media_lines[media.encoded])
            inner = part["resource"] if media.kind == "resource" else part
            inner.pop("data", None)
            inner.pop("blob", None)
            part |= {"sha256": "" if media.data is None else sha256(media.data).hexdigest(), "told": lines[-1]}
        parts.append(part)
    is_plain_text = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    return to_result(
        "\n".join(lines),
        _without_media(answer.structured_content, media_lines) if media_lines else answer.structured_content,
        took_ms,
        is_error=bool(answer.is_error),
        cut=len(answer.content) > MAX_ANSWER_PARTS,
        keep=keep,
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
    return _Media(kind, cleaned_type(mime_type), uri, encoded, data)


def _attach(media: _Media, attachments: list[ResultAttachment], keep: Keep | None) -> str:
    """Add media to the attachments, and return the line that describes it."""
    kind, mime_type, uri, _, data = media
    where = f"{kind} {uri}, " if uri else f"{kind} "
    if len(attachments) == MAX_ATTACHMENTS:
        return f"[{where}{mime_type}, left out: it is beyond the first {MAX_ATTACHMENTS}]"
    if data is None:
        return f"[{where}{mime_type}, left out: it is not base64]"
    end = redacted(uri).rstrip("/").rsplit("/", 1)[-1]
    attachment = ResultAttachment(
        kind=kind if matches_declaration(kind, mime_type, data) else "binary",
        mime_type=mime_type,
        size=len(data),
        sha256=sha256(data).hexdigest(),
        name="".join(char for char in end if char.isprintable())[:200],
        handle=keep(data) if keep else "",
    )
    attachments.append(attachment)
    return f"[{attachment.described_as(uri)}{attachment.handle and f', {attachment.handle}'}]"


def _block_text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ResourceLink() as link:
            size = byte_size(link.size) if link.size is not None else ""
            about = [link.name, link.title if link.title != link.name else "", str(link.uri), link.mime_type, size]
            text = f"resource {', '.join(filter(None, about))}" + (f": {link.description}" if link.description else "")
            return f"[{' '.join(text.split())}]"
        case EmbeddedResource(resource=inner) if not isinstance(inner, BlobResourceContents):
            return inner.text
    return f"[{block.type}]"


def _without_media(value: Any, media_lines: dict[str, str]) -> Any:
    match value:
        case str():
            return media_lines.get(value, value) if value else value
        case list():
            return [_without_media(one, media_lines) for one in value]
        case dict():
            return {key: _without_media(one, media_lines) for key, one in value.items()}
    return value
