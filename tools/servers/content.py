"""From the content of an MCP answer to text, nothing hidden."""

from collections.abc import Iterable

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)


def text_of(content: Iterable[ContentBlock]) -> str:
    """Return the content's texts, and in brackets what else there is."""
    return "\n".join(_text_of(block) for block in content)


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
