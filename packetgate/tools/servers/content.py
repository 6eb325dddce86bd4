"""Read the results of calls in any form: text, structured content and attachments."""

import asyncio
import json
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

from packetgate.state.printing import byte_size
from packetgate.state.redaction import redacted
from packetgate.state.routing import MAX_ATTACHMENTS, ResultAttachment
from packetgate.tools.servers.signatures import cleaned_type, fits

MAX_PARTS = 1_000
"""Parts of an answer that are parsed."""

_FIELDS = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})

Check = Callable[[dict[str, Any]], None]
"""Raises ValueError for a result that violates the protocol."""

Keep = Callable[[bytes], str]


class Answer(NamedTuple):
    """The answer of a server."""

    text: str
    """The texts of the parts, with a line in brackets for each part that is not text."""
    structured: Any
    """The structured content, with the same lines in place of base64."""
    attachments: tuple[ResultAttachment, ...] = ()
    parts: tuple[dict[str, Any], ...] = ()
    """The parts as sent, without bytes; empty for a single plain text."""


_Kind = Literal["image", "audio", "resource"]


class _Media(NamedTuple):
    kind: _Kind
    mime_type: str
    """As declared."""
    uri: str
    encoded: str
    data: bytes | None
    """None: not base64."""


async def read_answer(content: Sequence[ContentBlock], structured: Any, keep: Keep | None = None) -> Answer:
    """Return the answer; `keep` stores the bytes of attachments."""
    if all(isinstance(block, TextContent) for block in content):
        return _read(content, structured, keep)
    return await asyncio.to_thread(_read, content, structured, keep)


def _read(content: Sequence[ContentBlock], structured: Any, keep: Keep | None) -> Answer:
    lines: list[str] = []
    parts: list[dict[str, Any]] = []
    attachments: list[ResultAttachment] = []
    media_lines: dict[str, str] = {}
    """By base64."""
    for block in content:
        part, media = block.model_dump(mode="json", by_alias=True, exclude_none=True), _media(block)
        if media is None:
            lines.append(_text_of(block))
        else:
            if media.encoded not in media_lines:
                media_lines[media.encoded] = _attached(media, attachments, keep)
            lines.append(media_lines[media.encoded])
            inner = part["resource"] if media.kind == "resource" else part
            inner.pop("data", None)
            inner.pop("blob", None)
            part |= {"sha256": "" if media.data is None else sha256(media.data).hexdigest(), "told": lines[-1]}
        parts.append(part)
    plain = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    structured = _without_media(structured, media_lines)
    return Answer("\n".join(lines), structured, tuple(attachments), () if plain else tuple(parts))


def _media(block: ContentBlock) -> _Media | None:
    kind: _Kind
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


def _attached(media: _Media, attachments: list[ResultAttachment], keep: Keep | None) -> str:
    """Add media to the attachments, and return the line that describes it."""
    kind, mime_type, uri, _, data = media
    where = f"{kind} {uri}, " if uri else f"{kind} "
    if len(attachments) == MAX_ATTACHMENTS:
        return f"[{where}{mime_type}, left out: it is beyond the first {MAX_ATTACHMENTS}]"
    if data is None:
        return f"[{where}{mime_type}, left out: it is not base64]"
    end = redacted(uri).rstrip("/").rsplit("/", 1)[-1]
    attachment = ResultAttachment(
        kind=kind if fits(kind, mime_type, data) else "binary",
        mime_type=mime_type,
        size=len(data),
        sha256=sha256(data).hexdigest(),
        name="".join(char for char in end if char.isprintable())[:200],
        handle=keep(data) if keep else "",
    )
    attachments.append(attachment)
    return f"[{attachment.described_as(uri)}{attachment.handle and f', {attachment.handle}'}]"


def _text_of(block: ContentBlock) -> str:
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


def without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object without nulls, which many servers write for absent fields."""
    return {key: inner for key, inner in value.items() if inner is not None}


def readable_answer(answer: dict[str, Any], check: Check) -> dict[str, Any]:
    """Return a result that fits the protocol, with at most `MAX_PARTS` parts.

    An unknown part becomes a text with its JSON. Structured content that is not an object is wrapped in one; a result
    without content becomes structured content.
    """
    if "inputRequests" in answer or answer.get("resultType") not in {None, "complete"}:
        return answer
    kept = without_nulls(answer)
    if "content" not in kept and (others := {key: kept[key] for key in kept.keys() - _FIELDS}):
        kept.setdefault("structuredContent", others)
    parts = kept.get("content", [])
    parts = parts if isinstance(parts, list) else [parts]
    more = len(parts) - MAX_PARTS
    kept["content"] = parts[:MAX_PARTS] + ([_as_text(f"[cut here: {more:,} more parts]")] if more > 0 else [])
    if _is_fit(kept, check) and isinstance(kept.get("structuredContent", {}), dict):
        return kept
    kept["content"] = [_readable_part(part, check) for part in kept["content"]]
    if "isError" in kept:
        kept["isError"] = str(kept["isError"]).lower() in {"true", "1"}
    if not isinstance(kept.get("structuredContent", {}), dict):
        kept["structuredContent"] = {"result": kept["structuredContent"]}
    if not isinstance(kept.get("_meta", {}), dict):
        del kept["_meta"]
    return kept


def _readable_part(part: Any, check: Check) -> dict[str, Any]:
    if not isinstance(part, dict):
        return _as_text(part)
    part = without_nulls(part)
    if isinstance(part.get("annotations"), dict):
        part["annotations"] = without_nulls(part["annotations"])
    if isinstance(part.get("resource"), dict):
        part["resource"] = without_nulls(part["resource"])
    if "text" in part and part.get("type", "text") == "text":
        part |= _as_text(part["text"])
    bare = {key: part[key] for key in part.keys() - {"annotations", "_meta"}}
    return next((one for one in (part, bare) if _is_fit({"content": [one]}, check)), _as_text(part))


def _is_fit(answer: dict[str, Any], check: Check) -> bool:
    try:
        check(answer)
    except ValueError:
        return False
    return True


def _as_text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
