"""Make the result of a call: describe media, redact and limit texts and structured content, and store long texts."""

import asyncio
import json
from base64 import b64decode
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from packetgate.state.base import ErrorType, is_storable
from packetgate.state.codes import Code
from packetgate.state.printing import byte_size
from packetgate.state.redaction import redacted, redacted_data
from packetgate.state.routing import MAX_ATTACHMENTS, ResultAttachment, ToolResult
from packetgate.tools.attached.media import matches_declaration, normalized_media_type
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS, MAX_STORED_CHARS, read_more_hint

if TYPE_CHECKING:
    from mcp_types import CallToolResult

StoreContent = Callable[[str | bytes], str]
"""Function that stores a text or a file and returns its handle."""
MAX_ANSWER_PARTS = 1_000
"""Maximum number of parts of an answer that are parsed."""
MAX_OUTPUT_CHARS = 100_000
_MAX_LINE_CHARS = 120
"""Maximum length of structured content on one line. Longer JSON is indented."""


async def result_of_answer(
    answer: "CallToolResult", took_ms: float, keep: StoreContent | None = None, *, store_texts: bool = True
) -> ToolResult:
    """Return a server's answer as the result of a call.

    In the result's text, a line in brackets describes each part that is not text. In the structured content, the same
    lines replace base64.

    Args:
        keep: stores the bytes of an attachment and, with `store_texts`, a long text.
    """
    texts = [block.text for block in answer.content if block.type == "text"]
    length = sum(map(len, texts)) + len(str(answer.structured_content or ""))
    if length <= MAX_SHOWN_CHARS and len(texts) == len(answer.content):
        return _result(answer, took_ms, keep, store_texts)
    return await asyncio.to_thread(_result, answer, took_ms, keep, store_texts)


def _result(answer: "CallToolResult", took_ms: float, keep: StoreContent | None, store_texts: bool) -> ToolResult:
    lines: list[str] = []
    attachments: list[ResultAttachment] = []
    media_lines: dict[str, str] = {}
    """By the base64 text of a media part, the line that describes it."""
    parts = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in answer.content]
    for part in parts:
        kind, content = part["type"], part.get("resource", part)
        key = "blob" if content is not part else "data" if kind in {"image", "audio"} else ""
        if key in content:
            encoded = content.pop(key)
            try:
                data = b64decode("".join(encoded.split()), validate=True)
            except ValueError:
                data = None
            if encoded not in media_lines:
                media_lines[encoded] = _attach(kind, content, data, attachments, keep)
            lines.append(media_lines[encoded])
            part |= {"sha256": "" if data is None else sha256(data).hexdigest(), "fallback_text": lines[-1]}
        elif kind == "resource_link":
            title, size = part.get("title"), part.get("size")
            facts = [part["name"], title if title != part["name"] else "", part["uri"], part.get("mimeType")]
            facts += [byte_size(size) if size is not None else ""]
            described = f": {part['description']}" if part.get("description") else ""
            lines.append(f"[resource {' '.join((', '.join(filter(None, facts)) + described).split())}]")
        else:
            lines.append(content.get("text", f"[{kind}]"))
    is_plain_text = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    return to_result(
        "\n".join(lines),
        _without_media(answer.structured_content, media_lines) if media_lines else answer.structured_content,
        took_ms,
        is_error=bool(answer.is_error),
        cut=len(answer.content) > MAX_ANSWER_PARTS,
        store_text=keep if store_texts else None,
        attachments=tuple(attachments),
        parts=() if is_plain_text else tuple(parts),
        meta=answer.meta,
    )


def _attach(
    kind: Any,
    content: dict[str, Any],
    data: bytes | None,
    attachments: list[ResultAttachment],
    keep: StoreContent | None,
) -> str:
    """Add a media part to the attachments, and return the line that describes it."""
    uri = str(content.get("uri", ""))
    mime_type = normalized_media_type(content.get("mimeType") or "")
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
        handle=keep(data) if keep else "",
    )
    attachments.append(attachment)
    return f"[{attachment.described_as(uri)}{attachment.handle and f', {attachment.handle}'}]"


def _without_media(value: Any, media_lines: dict[str, str]) -> Any:
    match value:
        case str():
            return media_lines.get(value, value) if value else value
        case list():
            return [_without_media(inner, media_lines) for inner in value]
        case dict():
            return {key: _without_media(inner, media_lines) for key, inner in value.items()}
    return value


def to_result(
    text: str,
    structured: Any,
    execution_time_ms: float,
    *,
    is_error: bool = False,
    complete: bool = False,
    cut: bool = False,
    store_text: StoreContent | None = None,
    attachments: tuple[ResultAttachment, ...] = (),
    parts: tuple[dict[str, Any], ...] = (),
    meta: dict[str, Any] | None = None,
) -> ToolResult:
    """Return an answer as the result of a call. Blocks if the text is long.

    Args:
        is_error: whether the call failed; then `text` is the error's message.
        complete: whether the text contains all of the structured content.
        cut: whether a part of the answer is missing already.
        store_text: stores a text that is too long to show.
    """
    server_text, structured = redacted(text[:MAX_STORED_CHARS]), redacted_data(structured)
    content = _if_small(structured) if isinstance(structured, dict) else None
    output_field, same, repeats = "", False, not structured
    if isinstance(structured, dict) and structured:
        is_only = list(structured.values()) == [server_text] and is_storable(structured)
        output_field = next(iter(structured)) if is_only else ""
        same = is_only or _json_or_text(server_text) == structured
        repeats = same or _is_only_value(server_text, [*structured.values()])
    text = server_text if complete or repeats else "\n".join(filter(None, [server_text, to_json_text(structured)]))
    length = len(text)
    handle = store_text(text) if store_text and length > MAX_SHOWN_CHARS and not is_error else ""
    if length > MAX_OUTPUT_CHARS:
        cut = True
        text = cut_text(text, MAX_OUTPUT_CHARS, length, read_more_hint(handle))
    message = text.strip()
    server_part = (None if message else "") if is_error else server_text if text != server_text and content else None
    return ToolResult(
        success=not is_error,
        output="" if is_error else text,
        error=message or "the tool reported an error without a message" if is_error else None,
        error_type=ErrorType.TOOL_ERROR if is_error else None,
        code=Code.TOOL_FAILED if is_error else None,
        server_part=server_part,
        handle=handle,
        structured=None if same else content,
        structured_in_output=content if same and not output_field else None,
        output_field=output_field,
        execution_time_ms=execution_time_ms,
        truncated=cut,
        attachments=attachments,
        parts=small_and_redacted([*parts]) or (),
        meta=small_and_redacted(meta),
    )


async def to_result_async(text: str, structured: Any, *answer: Any, **options: Any) -> ToolResult:
    """Return the result of `to_result`, which runs in a thread if the text is long."""
    if len(text) <= MAX_SHOWN_CHARS and len(str(structured or "")) <= MAX_SHOWN_CHARS:
        return to_result(text, structured, *answer, **options)
    return await asyncio.to_thread(to_result, text, structured, *answer, **options)


def to_json_text(structured: Any) -> str:
    """Return structured content as text."""
    line = json.dumps(structured, ensure_ascii=False, default=str)
    return line if len(line) <= _MAX_LINE_CHARS else json.dumps(structured, ensure_ascii=False, indent=2, default=str)


def cut_text(text: str, limit: int, length: int, hint: str = "") -> str:
    """Return the beginning of a text, with the length of the whole."""
    return f"{text[:limit]}\n[cut here: {length:,} characters in all{hint}]"


def _is_only_value(text: str, values: list[Any]) -> bool:
    """Whether a text repeats the only value, as JSON or with one line for each item."""
    lines = text.splitlines()
    return len(values) == 1 and (
        values[0] in (_json_or_text(text), lines) or values[0] == [_json_or_text(line) for line in lines]
    )


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # not JSON, or too deeply nested
        return text


def small_and_redacted(content: Any) -> Any:
    """Return JSON data without secrets; None if it is large or cannot be stored."""
    return _if_small(redacted_data(content))


def _if_small(content: Any) -> Any:
    return content if len(str(content)) <= MAX_OUTPUT_CHARS and is_storable(content) else None
