"""From a tool's answer to a result: without secrets, bounded, and the whole of a long one kept."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from state.attachments import ResultAttachment
from state.base import is_storable
from state.redaction import redacted, redacted_data
from state.routing import ToolResult
from tools.text.kept import MAX_KEPT_CHARS, SHOWN_CHARS

Keep = Callable[[str | bytes], str]
MAX_OUTPUT_CHARS = 100_000


def to_result(
    text: str,
    structured: Any,
    execution_time_ms: float,
    *,
    is_error: bool = False,
    cut: bool = False,
    keep: Keep | None = None,
    attachments: tuple[ResultAttachment, ...] = (),
    lasts_s: float | None = None,
) -> ToolResult:
    """Return an answer as a result; an error answer becomes a failed one that carries the text as its error.

    `keep` takes a text that is longer than what is shown at once, and returns the name to read on by. Blocking where
    the text is long.
    """
    length = len(text)
    text, structured = redacted(text[:MAX_KEPT_CHARS]), redacted_data(structured)
    handle = keep(text) if keep and length > SHOWN_CHARS and not is_error else ""
    if length > MAX_OUTPUT_CHARS:
        cut = True
        text = f"{text[:MAX_OUTPUT_CHARS]}\n[cut here: {length:,} characters in all{reading_on(handle)}]"
    if is_error:
        return ToolResult(
            success=False,
            error=text.strip() or "the tool reported an error without saying which",
            said=None if text.strip() else "",
            execution_time_ms=execution_time_ms,
            truncated=cut,
            attachments=attachments,
        )
    return ToolResult(
        success=True,
        output=text,
        structured=_structured(structured, text),
        execution_time_ms=execution_time_ms,
        truncated=cut,
        handle=handle,
        attachments=attachments,
        lasts_s=lasts_s,
    )


async def to_result_aside(text: str, *answer: Any, **how: Any) -> ToolResult:
    """Return what `to_result` does, made in a thread where the text is long."""
    if len(text) <= SHOWN_CHARS and len(str(answer[0] or "")) <= SHOWN_CHARS:
        return to_result(text, *answer, **how)
    return await asyncio.to_thread(to_result, text, *answer, **how)


def reading_on(handle: str) -> str:
    """Return how the rest of a result can be read, in words; nothing where it cannot."""
    return f'; all of it can be read with ai.read, path "{handle}"' if handle else ""


def _structured(content: Any, text: str) -> dict[str, Any] | None:
    """Keep structured content only where it says more than the text, and is not larger than text may be."""
    if not isinstance(content, dict) or list(content.values()) == [text] or len(str(content)) > MAX_OUTPUT_CHARS:
        return None
    if not is_storable(content):
        return None
    try:
        return None if json.loads(text) == content else content
    except (ValueError, RecursionError):  # not JSON, or thousands of brackets
        return content
