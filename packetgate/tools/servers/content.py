"""From the content of an MCP answer to text, nothing hidden, and attachments: their bytes go to a file or nowhere."""

import asyncio
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

from packetgate.state.attachments import MAX_ATTACHMENTS, MAX_NAME, ResultAttachment
from packetgate.state.printing import byte_size
from packetgate.state.redaction import redacted
from packetgate.tools.servers.signatures import cleaned_type, fits

Keep = Callable[[bytes], str]


class Answer(NamedTuple):
    """What a server answered."""

    text: str
    """The texts of its parts, with a line in brackets for each that is not text."""
    structured: Any
    """The structured content, without the bytes of the parts."""
    attachments: tuple[ResultAttachment, ...] = ()
    parts: tuple[dict[str, Any], ...] = ()
    """The parts as they were sent, without bytes; empty for one plain text, or none."""


class _Declared(NamedTuple):
    kind: Literal["image", "audio", "resource"]
    mime_type: str
    uri: str
    encoded: str
    """The bytes, as base64."""


async def read_answer(content: Sequence[ContentBlock], structured: Any, keep: Keep | None = None) -> Answer:
    """Return what a server answered; `keep` takes the bytes of attachments."""
    if all(isinstance(block, TextContent) for block in content):
        return _read(content, structured, keep)
    return await asyncio.to_thread(_read, content, structured, keep)


def _read(content: Sequence[ContentBlock], structured: Any, keep: Keep | None) -> Answer:
    lines: list[str] = []
    parts: list[dict[str, Any]] = []
    attachments: list[ResultAttachment] = []
    told: dict[str, str] = {}
    for block in content:
        declared = _declared(block)
        if declared is not None and declared.encoded not in told:
            told[declared.encoded] = _told(declared, attachments, keep)
        line = told[declared.encoded] if declared else _text_of(block)
        lines.append(line)
        parts.append(_part(block, declared, line))
    plain = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    return Answer("\n".join(lines), _without(structured, told), tuple(attachments), () if plain else tuple(parts))


def _part(block: ContentBlock, declared: _Declared | None, line: str) -> dict[str, Any]:
    """Return a part as it was sent, with a digest for its bytes, and with the line that says what they are."""
    part = block.model_dump(mode="json", by_alias=True, exclude_none=True)
    if declared is None:
        return part
    try:
        digest = sha256(b64decode("".join(declared.encoded.split()), validate=True)).hexdigest()
    except ValueError:
        digest = ""
    inner = part["resource"] if declared.kind == "resource" else part
    inner.pop("data", None)
    inner.pop("blob", None)
    return {**part, "sha256": digest, "told": line}


def _told(declared: _Declared, attachments: list[ResultAttachment], keep: Keep | None) -> str:
    """Return the line for what is not text, and add it to the attachments where it can be one."""
    kind, mime_type, uri, encoded = declared
    where = f"{kind} {uri}, " if uri else f"{kind} "
    if len(attachments) == MAX_ATTACHMENTS:
        return f"[{where}{mime_type}, left out: it is beyond the first {MAX_ATTACHMENTS}]"
    try:
        data = b64decode("".join(encoded.split()), validate=True)
    except ValueError:
        return f"[{where}{mime_type}, left out: it is not base64]"
    made = ResultAttachment(
        kind=kind if fits(kind, mime_type, data) else "binary",
        mime_type=mime_type,
        size=len(data),
        sha256=sha256(data).hexdigest(),
        name=_name(uri),
        handle=keep(data) if keep else "",
    )
    attachments.append(made)
    return f"[{made.told_as(uri)}{made.handle and f', {made.handle}'}]"


def _declared(block: ContentBlock) -> _Declared | None:
    """Return what the server says of a block that is not text; None for one that is, or that has no bytes."""
    match block:
        case ImageContent() | AudioContent():
            return _Declared(block.type, cleaned_type(block.mime_type), "", block.data)
        case EmbeddedResource(resource=BlobResourceContents() as inner):
            return _Declared("resource", cleaned_type(inner.mime_type or ""), str(inner.uri), inner.blob)
    return None


def _name(uri: str) -> str:
    """Return the end of an address, as a name."""
    end = redacted(uri).rstrip("/").rsplit("/", 1)[-1]
    return "".join(char for char in end if char.isprintable())[:MAX_NAME]


def _text_of(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ResourceLink():
            return _told_link(block)
        case EmbeddedResource(resource=inner) if not isinstance(inner, BlobResourceContents):
            return inner.text
    return f"[{block.type}]"


def _told_link(link: ResourceLink) -> str:
    """Return what a link leads to, on one line."""
    size = byte_size(link.size) if link.size is not None else ""
    about = [link.name, link.title if link.title != link.name else "", str(link.uri), link.mime_type, size]
    told = f"resource {', '.join(filter(None, about))}" + (f": {link.description}" if link.description else "")
    return f"[{' '.join(told.split())}]"


def _without(value: Any, told: dict[str, str]) -> Any:
    """Return JSON in which the lines stand for the bytes that they tell of."""
    match value:
        case str():
            return told.get(value, value) if value else value
        case list():
            return [_without(one, told) for one in value]
        case dict():
            return {key: _without(one, told) for key, one in value.items()}
    return value
