"""From a tool's answer to a result: bounded."""

import json
from typing import Any

from state.base import is_storable
from state.routing import ToolResult

MAX_OUTPUT_CHARS = 100_000


def to_result(
    text: str, structured: Any, execution_time_ms: float, *, is_error: bool = False, cut: bool = False
) -> ToolResult:
    """Return an answer as a result; an error answer becomes a failed one that carries the text as its error."""
    if len(text) > MAX_OUTPUT_CHARS:
        cut = True
        text = f"{text[:MAX_OUTPUT_CHARS]}\n[cut here: {len(text):,} characters in all]"
    if is_error:
        return ToolResult(
            success=False,
            error=text.strip() or "the tool reported an error without saying which",
            execution_time_ms=execution_time_ms,
            truncated=cut,
        )
    return ToolResult(
        success=True,
        output=text,
        structured=_structured(structured, text),
        execution_time_ms=execution_time_ms,
        truncated=cut,
    )


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
