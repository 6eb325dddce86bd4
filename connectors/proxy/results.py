"""What a call came to, as its client reads it."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mcp_types
from fastmcp.tools.base import ToolResult
from pydantic import BaseModel

from state.packet import CognitionPacket
from state.routing import Risk, ToolCall
from state.transitions import ToolExecutionStatus
from tools.execution.telling import result_text

FileOf = Callable[[str, str], Path | None]
"""Returns the file of what a session keeps under a handle."""
AGE = "packetgate/age-s"
"""In a result's `_meta`: how many seconds ago it was read, where it comes from the cache."""
MOST_EVENT_BYTES = 1_000_000
"""Of a result that is an event of a stream: the official SDK's clients break off at 1,048,576 bytes of JSON."""
MOST_TEXT_BYTES = 300_000
"""Of a text as JSON, and of structured content: a text may be in a result twice. A character has at most six."""


class CallOutcome(BaseModel):
    """What a call by a meta-tool came to."""

    tool: str
    status: str
    """`executed`, `failed`, `skipped` (a dry run, or nobody could be asked), `user_denied` or `unknown`."""
    text: str
    """What the tool returned; of a call that was not run, why, and the way out."""
    structured: dict[str, Any] | None = None
    corrections: list[str] = []
    """What was mended in the call."""
    age_s: float | None = None
    """How many seconds ago it was read, where it comes from the cache."""


def outcome_of(
    packet: CognitionPacket, file_of: FileOf, most: int | None
) -> tuple[CallOutcome, list[mcp_types.ContentBlock]]:
    """Return what a packet's call came to, and its content, in at most so many bytes of JSON.

    Blocking: attachments are read from their files.
    """
    call, routing = packet.routing.calls[0], packet.routing
    corrections = [one.message for one in routing.corrections if one.mended]
    text = result_text(call) + way_out(call, packet)
    if _bytes_of(text) > MOST_TEXT_BYTES:
        text = f"{text[: MOST_TEXT_BYTES // 6]}\n[cut here: {len(text):,} characters in all]"
    structured = call.result.structured if call.result else None
    if _bytes_of(structured) > MOST_TEXT_BYTES:
        structured = None
    room = most - 2 * _bytes_of(text) - _bytes_of(structured) if most else None
    content: list[mcp_types.ContentBlock] = [mcp_types.TextContent(text=text)]
    content += _attached(call, packet.header.session_id, file_of, room)
    told = CallOutcome(
        tool=call.tool_name,
        status=call.status.value,
        text=text,
        structured=structured,
        corrections=corrections,
        age_s=call.result.age_s if call.result else None,
    )
    return told, content


def way_out(call: ToolCall, packet: CognitionPacket) -> str:
    """Return how a call can be allowed that is switched off; empty for any other."""
    settings, client = packet.governance.settings, packet.header.person
    if call.status is not ToolExecutionStatus.SKIPPED or settings.allows(call.risk):
        return ""
    what = "commands" if call.risk is Risk.EXECUTE else "writes"
    return (
        f"\nTo allow it: start the proxy with --allow-{what}, or set allow_{what} = true under "
        f"[proxy.clients.{client}] in packetgate.toml. A call is then asked about before it runs."
    )


def direct(packet: CognitionPacket, file_of: FileOf, most: int | None) -> ToolResult:
    """Return what a call of a listed tool came to, as the tool itself would say it. Blocking."""
    told, content = outcome_of(packet, file_of, most)
    return ToolResult(
        content=content, structured_content=told.structured, meta=_meta(told), is_error=told.status != "executed"
    )


def by_meta_tool(packet: CognitionPacket, file_of: FileOf, most: int | None) -> ToolResult:
    """Return what a call by a meta-tool came to, in the form of its output schema. Blocking."""
    told, content = outcome_of(packet, file_of, most)
    return ToolResult(
        content=content, structured_content=told.model_dump(), meta=_meta(told), is_error=told.status != "executed"
    )


def _meta(told: CallOutcome) -> dict[str, Any] | None:
    return {AGE: told.age_s} if told.age_s is not None else None


def _attached(call: ToolCall, session_id: str, file_of: FileOf, room: int | None) -> Iterator[mcp_types.ContentBlock]:
    """Yield what a tool returned besides text, as it was sent: what is not what it says it is stays told in words.

    So does what there is no room for, in bytes.
    """
    for one in call.result.attachments if call.result else ():
        file = file_of(one.handle, session_id) if one.handle else None
        if file is None or one.kind == "binary":
            continue
        data = b64encode(file.read_bytes()).decode()
        if room is not None and len(data) > room:
            yield mcp_types.TextContent(text=f"[{one.handle}: left out, as it is too long for one answer]")
            continue
        room = room - len(data) if room is not None else None
        if one.kind == "image":
            yield mcp_types.ImageContent(data=data, mime_type=one.mime_type)
        elif one.kind == "audio":
            yield mcp_types.AudioContent(data=data, mime_type=one.mime_type)
        else:
            blob = mcp_types.BlobResourceContents(uri=f"{one.handle}/{one.name}", mime_type=one.mime_type, blob=data)
            yield mcp_types.EmbeddedResource(resource=blob)


def _bytes_of(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
