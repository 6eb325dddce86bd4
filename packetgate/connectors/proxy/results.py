"""Render a call's result for its client, and map resource addresses."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types
from fastmcp.tools.base import ToolResult
from pydantic import AnyUrl, BaseModel, TypeAdapter, ValidationError

from packetgate.state.packet import CognitionPacket
from packetgate.state.routing import ResultAttachment, Risk, ToolCall
from packetgate.state.transitions import ToolExecutionStatus
from packetgate.tools.checks.validation import result_flaw
from packetgate.tools.execution.running import result_text
from packetgate.tools.servers.results import json_of, reading_on

_ADDRESS = re.compile(r"([^:]+://|[A-Za-z][A-Za-z0-9+.-]*:)(.*)", re.DOTALL)


def namespaced(server: str, uri: str) -> str:
    """Return the address, or the template of addresses, by which the proxy lists a server's resource."""
    found = _ADDRESS.fullmatch(uri)
    return f"{found[1]}{server}/{found[2]}" if found else uri


def own_address(server: str, uri: str) -> str | None:
    """Return the server's own form of a listed address; None if the address is another server's."""
    found = _ADDRESS.fullmatch(uri)
    if found is None:
        return uri
    own = found[2].removeprefix(f"{server}/")
    return f"{found[1]}{own}" if own != found[2] else None


FileOf = Callable[[str, str], Path | None]
"""Returns the file of a stored result, by handle and session."""
_BLOCK: TypeAdapter[mcp_types.ContentBlock] = TypeAdapter(mcp_types.ContentBlock)
FORM = "fastmcp"
"""In a result's `_meta`: how FastMCP's client is to unwrap the tool's own structured content."""
MOST_EVENT_BYTES = 1_000_000
"""Of a result that is an event of a stream: the official SDK's clients break off at 1,048,576 bytes of JSON."""
MOST_TEXT_BYTES = 300_000
"""Of a text as JSON, and of structured content: a text may be in a result twice. A character has at most six."""


class CallOutcome(BaseModel):
    """The outcome of a call by a meta-tool."""

    tool: str
    status: str
    """`executed`, `failed`, `skipped` (a dry run, or nobody could be asked), `user_denied` or `unknown`."""
    text: str
    """The tool's result; for a call that did not run, why, and how to allow it."""
    structured: dict[str, Any] | None = None
    corrections: list[str] = []
    """Repairs made to the call."""


def direct(
    packet: CognitionPacket, file_of: FileOf, most: int | None, output_schema: dict[str, Any] | None = None
) -> ToolResult:
    """Return the outcome of a listed tool's call, in at most so many bytes, as the tool itself would return it.

    Official clients drop a result that breaks its `output_schema`, unless it is an error: so it becomes one. Blocking.
    """
    call = packet.routing.calls[0]
    outcome, content = _outcome(packet, file_of, most)
    is_error = outcome.status != "executed"
    if output_schema and not is_error and (flaw := result_flaw(output_schema, outcome.structured)):
        is_long = outcome.structured is None and call.result is not None and call.result.truncated
        why = "is too long for one answer" if is_long else f"breaks its output schema: {flaw}"
        content.append(mcp_types.TextContent(text=f"[the tool ran; its structured content {why}]"))
        is_error = True
    return ToolResult(
        content=content, structured_content=outcome.structured, meta=_meta(call) or None, is_error=is_error
    )


def by_meta_tool(packet: CognitionPacket, file_of: FileOf, most: int | None) -> ToolResult:
    """Return the outcome of a call by a meta-tool, in the form of its output schema. Blocking."""
    outcome, content = _outcome(packet, file_of, most)
    meta = {key: value for key, value in _meta(packet.routing.calls[0]).items() if key != FORM} or None
    is_error = outcome.status != "executed"
    return ToolResult(content=content, structured_content=outcome.model_dump(), meta=meta, is_error=is_error)


def _outcome(
    packet: CognitionPacket, file_of: FileOf, most: int | None
) -> tuple[CallOutcome, list[mcp_types.ContentBlock]]:
    call, routing = packet.routing.calls[0], packet.routing
    text = _with_own_reader(result_text(call), call) + way_out(call, packet)
    if _bytes_of(text) > MOST_TEXT_BYTES:
        text = f"{text[: MOST_TEXT_BYTES // 6]}\n[cut here: {len(text):,} characters in all{_rest_of(call)}]"
    structured: Any = None
    wrapped_as = call.result.wrapped_as if call.result else ""
    if call.result and wrapped_as:
        structured = {wrapped_as: text if call.status is ToolExecutionStatus.EXECUTED else call.result.error}
    elif call.result:
        own = call.result.restated if call.result.structured is None else call.result.structured
        structured = own if _bytes_of(own) <= MOST_TEXT_BYTES else None
    room = most - 2 * _bytes_of(text) - _bytes_of(structured) if most else None
    outcome = CallOutcome(
        tool=call.tool_name,
        status=call.status.value,
        text=text,
        structured=structured,
        corrections=[one.message for one in routing.corrections if one.mended],
    )
    return outcome, [*_content(call, text, _Files(packet.header.session_id, file_of, room))]


def _rest_of(call: ToolCall) -> str:
    handle = call.result.handle if call.result else ""
    return f'; read_result with handle "{handle}" returns all of it' if handle else ""


def _with_own_reader(text: str, call: ToolCall) -> str:
    handle = call.result.handle if call.result else ""
    return text.replace(reading_on(handle), _rest_of(call)) if handle else text


def way_out(call: ToolCall, packet: CognitionPacket) -> str:
    """Return how to enable a disabled call; empty for any other call."""
    settings, client = packet.governance.settings, packet.header.person
    if call.status is not ToolExecutionStatus.SKIPPED or settings.allows(call.risk):
        return ""
    what = "commands" if call.risk is Risk.EXECUTE else "writes"
    return (
        f"\nTo allow it: start the proxy with --allow-{what}, or set allow_{what} = true under "
        f"[proxy.clients.{client}] in packetgate.toml. A call is then asked about before it runs."
    )


def _meta(call: ToolCall) -> dict[str, Any]:
    result = call.result
    if result is None:
        return {}
    return {key: value for key, value in (result.meta or {}).items() if not key.startswith("packetgate/")}


@dataclass
class _Files:
    """The files of a session, within the size limit of an answer."""

    session_id: str
    file_of: FileOf
    room: int | None

    def encoded(self, one: ResultAttachment | None) -> tuple[str | None, str]:
        """Return an attachment as base64, None where it cannot be sent, and a note where there is no room for it."""
        file = self.file_of(one.handle, self.session_id) if one and one.handle else None
        if one is None or file is None or one.kind == "binary":
            return None, ""
        data = b64encode(file.read_bytes()).decode()
        if self.room is not None and len(data) > self.room:
            return None, f"\n[{one.handle}: left out, as it is too long for one answer]"
        self.room = None if self.room is None else self.room - len(data)
        return data, ""


def _content(call: ToolCall, text: str, files: _Files) -> Iterator[mcp_types.ContentBlock]:
    """Yield what a tool returned, part by part as it was sent, then its structured content if no text has it.

    A call without an answer of the tool itself is described in words.
    """
    result, executed = call.result, call.status is ToolExecutionStatus.EXECUTED
    own = result is not None and not result.dry_run and (executed or result.said is None)
    if result is None or not own or _bytes_of(result.parts) > MOST_TEXT_BYTES:
        yield mcp_types.TextContent(text=text)
        return
    whole = _with_own_reader(result.output, call) if executed else result.error or ""
    structured = json_of(result.structured) if result.structured else ""
    structured = structured if whole.endswith(structured) else ""
    before = whole.removesuffix(structured).removesuffix("\n") if structured else whole
    attached = {one.sha256: one for one in result.attachments}
    for part in result.parts:
        yield _block(call.tool_name.partition(".")[0], part, attached.get(str(part.get("sha256"))), files)
    if before and not result.parts:
        yield mcp_types.TextContent(text=before if _bytes_of(before) <= MOST_TEXT_BYTES else text)
    if structured:
        yield mcp_types.TextContent(text=structured)


def _block(server: str, part: dict[str, Any], attached: ResultAttachment | None, files: _Files) -> Any:
    """Return a part with its bytes, and with an address that the client can read; in words where that cannot be."""
    block = {key: value for key, value in part.items() if key not in {"sha256", "told"}}
    if "told" in part:
        data, note = files.encoded(attached)
        if attached is None or data is None:
            about: dict[str, Any] = {key: block[key] for key in ("annotations", "_meta") if key in block}
            block = {"type": "text", "text": part["told"] + note, **about}
        elif block["type"] == "resource":
            block["resource"] = {**block["resource"], "blob": data, "mimeType": attached.mime_type}
        else:
            block |= {"data": data, "mimeType": attached.mime_type}
    if block["type"] in {"resource", "resource_link"}:
        named = block.get("resource", block)
        uri = named["uri"]
        if not uri.startswith(("http://", "https://")):
            uri = namespaced(server, uri)
        if not _is_address(uri):  # official clients would drop the whole answer
            return mcp_types.TextContent(text=named.get("text") or json.dumps(named, ensure_ascii=False))
        block = {**block, "resource": {**named, "uri": uri}} if "resource" in block else {**block, "uri": uri}
    return _BLOCK.validate_python(block, by_name=False)


def _is_address(uri: str) -> bool:
    try:
        AnyUrl(uri)
    except ValidationError:
        return False
    return True


def _bytes_of(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
