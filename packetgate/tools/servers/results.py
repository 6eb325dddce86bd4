"""Turn the answer of a tool into a result: redacted, bounded, with attachments and long texts stored."""

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

from packetgate.state.base import ErrorType, is_storable
from packetgate.state.codes import Code
from packetgate.state.printing import byte_size
from packetgate.state.redaction import redacted, redacted_data
from packetgate.state.routing import MAX_ATTACHMENTS, ResultAttachment, ToolResult
from packetgate.tools.attached.media_types import cleaned_type, matches_declaration
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS, MAX_STORED_CHARS

Keep = Callable[[str | bytes], str]
"""Stores a text or a file, and returns its handle."""

MAX_OUTPUT_CHARS = 100_000
_LINE_CHARS = 120
"""Longer JSON of structured content is indented."""


class ParsedAnswer(NamedTuple):
    """The answer of a server."""

    text: str
    """The texts of the parts, with a line in brackets for each part that is not text."""
    structured: Any
    """The structured content, with the same lines in place of base64."""
    attachments: tuple[ResultAttachment, ...] = ()
    parts: tuple[dict[str, Any], ...] = ()
    """The parts as sent, without bytes; empty for a single plain text."""


async def parse_tool_answer(content: Sequence[ContentBlock], structured: Any, keep: Keep | None = None) -> ParsedAnswer:
    """Return the answer of a server; `keep` stores the bytes of attachments."""
    if all(isinstance(block, TextContent) for block in content):
        return _parsed(content, structured, keep)
    return await asyncio.to_thread(_parsed, content, structured, keep)


def to_result(
    text: str,
    structured: Any,
    execution_time_ms: float,
    *,
    is_error: bool = False,
    complete: bool = False,
    cut: bool = False,
    keep: Keep | None = None,
    attachments: tuple[ResultAttachment, ...] = (),
    parts: tuple[dict[str, Any], ...] = (),
    meta: dict[str, Any] | None = None,
) -> ToolResult:
    """Return the result for an answer; an error becomes a failed result with the text as error.

    Args:
        complete: whether the text contains all of the structured content.
        cut: whether the answer is incomplete already.
        keep: stores a text that is too long to show.

    Blocking where the text is long.
    """
    said, structured = redacted(text[:MAX_STORED_CHARS]), redacted_data(structured)
    repeats = not structured or _repeats(said, structured)
    text = said if complete or repeats else "\n".join(filter(None, [said, to_json_text(structured)]))
    content, same, wrapped = _storable(structured), _is_same(said, structured), _wrapper(said, structured)
    length = len(text)
    handle = keep(text) if keep and length > MAX_SHOWN_CHARS and not is_error else ""
    if length > MAX_OUTPUT_CHARS:
        cut = True
        text = f"{text[:MAX_OUTPUT_CHARS]}\n[cut here: {length:,} characters in all{read_more_hint(handle)}]"
    own = text.strip()
    foreign = (None if own else "") if is_error else said if text != said and content else None
    return ToolResult(
        success=not is_error,
        output="" if is_error else text,
        error=own or "the tool reported an error without a message" if is_error else None,
        error_type=ErrorType.TOOL_ERROR if is_error else None,
        code=Code.TOOL_FAILED if is_error else None,
        said=foreign,
        handle=handle,
        structured=None if same else content,
        restated=content if same and not wrapped else None,
        wrapped_as=wrapped,
        execution_time_ms=execution_time_ms,
        truncated=cut,
        attachments=attachments,
        parts=_small(redacted_data([*parts])) or (),
        meta=_storable(redacted_data(meta)),
    )


async def to_result_async(text: str, structured: Any, *answer: Any, **options: Any) -> ToolResult:
    """Return what `to_result` does; use a thread for a long text."""
    if len(text) <= MAX_SHOWN_CHARS and len(str(structured or "")) <= MAX_SHOWN_CHARS:
        return to_result(text, structured, *answer, **options)
    return await asyncio.to_thread(to_result, text, structured, *answer, **options)


def read_more_hint(handle: str) -> str:
    """Return a hint how to read the rest of a result; empty without a handle."""
    return f'; all of it can be read with ai.read, path "{handle}"' if handle else ""


def to_json_text(structured: Any) -> str:
    """Return structured content as text."""
    line = json.dumps(structured, ensure_ascii=False, default=str)
    return line if len(line) <= _LINE_CHARS else json.dumps(structured, ensure_ascii=False, indent=2, default=str)


def _repeats(text: str, structured: Any) -> bool:
    """Whether a text is the structured content, or its only value: as JSON, or as a line for each item."""
    if _is_same(text, structured):
        return True
    if not isinstance(structured, dict) or len(structured) != 1:
        return False
    (value,) = structured.values()
    lines = text.splitlines()
    return value in (_json_or_text(text), lines) or (
        isinstance(value, list) and len(value) == len(lines) and value == [_json_or_text(line) for line in lines]
    )


def _is_same(text: str, structured: Any) -> bool:
    return isinstance(structured, dict) and (bool(_wrapper(text, structured)) or _json_or_text(text) == structured)


def _wrapper(text: str, structured: Any) -> str:
    """Return the name under which the structured content has just the text; empty if it does not."""
    same = isinstance(structured, dict) and list(structured.values()) == [text]
    return next(iter(structured), "") if same and is_storable(structured) else ""


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # not JSON, or thousands of brackets
        return text


def _storable(content: Any) -> dict[str, Any] | None:
    return _small(content) if isinstance(content, dict) and is_storable(content) else None


def _small(content: Any) -> Any:
    return content if len(str(content)) <= MAX_OUTPUT_CHARS and is_storable(content) else None


_MediaKind = Literal["image", "audio", "resource"]


class _Media(NamedTuple):
    kind: _MediaKind
    mime_type: str
    """As declared."""
    uri: str
    encoded: str
    data: bytes | None
    """None: not base64."""


def _parsed(content: Sequence[ContentBlock], structured: Any, keep: Keep | None) -> ParsedAnswer:
    lines: list[str] = []
    parts: list[dict[str, Any]] = []
    attachments: list[ResultAttachment] = []
    media_lines: dict[str, str] = {}
    """By base64."""
    for block in content:
        part, media = block.model_dump(mode="json", by_alias=True, exclude_none=True), _media(block)
        if media is None:
            lines.append(_block_text(block))
        else:
            if media.encoded not in media_lines:
                media_lines[media.encoded] = _attach(media, attachments, keep)
            lines.append(media_lines[media.encoded])
            inner = part["resource"] if media.kind == "resource" else part
            inner.pop("data", None)
            inner.pop("blob", None)
            part |= {"sha256": "" if media.data is None else sha256(media.data).hexdigest(), "told": lines[-1]}
        parts.append(part)
    plain = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    structured = _without_media(structured, media_lines) if media_lines else structured
    return ParsedAnswer("\n".join(lines), structured, tuple(attachments), () if plain else tuple(parts))


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
