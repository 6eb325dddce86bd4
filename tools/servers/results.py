"""From an MCP answer to a tool result: text, bounded, nothing hidden."""

import json
from typing import Any

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

from state.routing import ToolResult

MAX_OUTPUT_CHARS = 100_000


def to_result(answer: CallToolResult, execution_time_ms: float) -> ToolResult:
    """Return the answer as text; an error answer becomes a failed result that carries the text as its error."""
    text = "\n".join(_text_of(block) for block in answer.content)
    cut = len(text) > MAX_OUTPUT_CHARS
    if cut:
        text = f"{text[:MAX_OUTPUT_CHARS]}\n[cut here: {len(text):,} characters in all]"
    if answer.is_error:
        return ToolResult(
            success=False,
            error=text.strip() or "the tool reported an error without saying which",
            execution_time_ms=execution_time_ms,
            truncated=cut,
        )
    return ToolResult(
        success=True,
        output=text,
        structured=_structured(answer.structured_content, text),
        execution_time_ms=execution_time_ms,
        truncated=cut,
    )


def _structured(content: Any, text: str) -> dict[str, Any] | None:
    """Keep structured content only where it says more than the text, and is not larger than text may be."""
    if not isinstance(content, dict) or list(content.values()) == [text] or len(str(content)) > MAX_OUTPUT_CHARS:
        return None
    try:
        return None if json.loads(text) == content else content
    except (ValueError, RecursionError):  # not JSON, or thousands of brackets
        return content


def _text_of(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4:,} bytes]"
        case ResourceLink():
            return f"[resource {block.uri}]"
        case EmbeddedResource():
            inner = block.resource
            if isinstance(inner, BlobResourceContents):
                return f"[resource {inner.uri}, {len(inner.blob) * 3 // 4:,} bytes]"
            return inner.text
    return f"[{block!r}]"
