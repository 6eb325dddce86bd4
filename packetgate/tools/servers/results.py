"""Make the result of a call: redact its text and structured content, limit their size, and store a long text."""

import asyncio
import json
from typing import Any

from packetgate.state.base import ErrorType, is_storable
from packetgate.state.codes import Code
from packetgate.state.redaction import redacted, redacted_data
from packetgate.state.routing import ResultAttachment, ToolResult
from packetgate.tools.servers.server import StoreContent
from packetgate.tools.text.result_store import MAX_SHOWN_CHARS, MAX_STORED_CHARS

MAX_OUTPUT_CHARS = 100_000
_MAX_LINE_CHARS = 120
"""Maximum length of structured content on one line. Longer JSON is indented."""


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
    repeats = not structured or _repeats_structured(server_text, structured)
    text = server_text if complete or repeats else "\n".join(filter(None, [server_text, to_json_text(structured)]))
    content, output_field = _storable(structured), _wrapper(server_text, structured)
    same = _is_same_content(server_text, structured)
    length = len(text)
    handle = store_text(text) if store_text and length > MAX_SHOWN_CHARS and not is_error else ""
    if length > MAX_OUTPUT_CHARS:
        cut = True
        text = f"{text[:MAX_OUTPUT_CHARS]}\n[cut here: {length:,} characters in all{read_more_hint(handle)}]"
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
        parts=_if_small(redacted_data([*parts])) or (),
        meta=_storable(redacted_data(meta)),
    )


async def to_result_async(text: str, structured: Any, *answer: Any, **options: Any) -> ToolResult:
    """Return the result of `to_result`, which runs in a thread if the text is long."""
    if len(text) <= MAX_SHOWN_CHARS and len(str(structured or "")) <= MAX_SHOWN_CHARS:
        return to_result(text, structured, *answer, **options)
    return await asyncio.to_thread(to_result, text, structured, *answer, **options)


def read_more_hint(handle: str) -> str:
    """Return a hint that names the tool and the handle to read a whole result; empty without a handle."""
    return f'; all of it can be read with ai.read, path "{handle}"' if handle else ""


def to_json_text(structured: Any) -> str:
    """Return structured content as text."""
    line = json.dumps(structured, ensure_ascii=False, default=str)
    return line if len(line) <= _MAX_LINE_CHARS else json.dumps(structured, ensure_ascii=False, indent=2, default=str)


def _repeats_structured(text: str, structured: Any) -> bool:
    """Whether a text repeats the structured content or its only value, as JSON or with one line for each item."""
    if _is_same_content(text, structured):
        return True
    if not isinstance(structured, dict) or len(structured) != 1:
        return False
    (value,) = structured.values()
    lines = text.splitlines()
    return value in (_json_or_text(text), lines) or (
        isinstance(value, list) and len(value) == len(lines) and value == [_json_or_text(line) for line in lines]
    )


def _is_same_content(text: str, structured: Any) -> bool:
    return isinstance(structured, dict) and (bool(_wrapper(text, structured)) or _json_or_text(text) == structured)


def _wrapper(text: str, structured: Any) -> str:
    """Return the only key of structured content whose value is the text; empty for other structured content."""
    same = isinstance(structured, dict) and list(structured.values()) == [text]
    return next(iter(structured), "") if same and is_storable(structured) else ""


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # not JSON, or too deeply nested
        return text


def _storable(content: Any) -> dict[str, Any] | None:
    return _if_small(content) if isinstance(content, dict) and is_storable(content) else None


def _if_small(content: Any) -> Any:
    return content if len(str(content)) <= MAX_OUTPUT_CHARS and is_storable(content) else None
